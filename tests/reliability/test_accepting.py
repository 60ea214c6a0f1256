"""Accepted messages are stored once and in order, despite killed processes, repeated sends and concurrent senders."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest

from tests.reliability.installation import PEOPLE, Installation, kill_group
from tests.reliability.people import ASYNC, ENDED, Person
from tests.reliability.readers import SocketReader
from tests.reliability.scripting import Script, new_key
from tests.servers.websocket import connect


@pytest.mark.mechanism("contract.accepted")
def test_a_message_acknowledged_over_a_socket_survives_kill_9(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key = new_key("socket")
    conversation = alice.new_conversation()
    frame = {
        "type": "message.send",
        "client_id": key,
        "conversation_id": conversation,
        "content": f"Hi {key}",
    }
    headers = {"Authorization": f"Bearer {installation.tokens[PEOPLE[0]]}"}
    with connect(installation.first.ws_url, additional_headers=headers) as socket:
        socket.send(json.dumps(frame))
        ack = next(event for event in map(json.loads, socket) if event["type"] == "ack")
        kill_group(installation.first)
    installation.start()
    with connect(installation.second.ws_url, additional_headers=headers) as socket:
        socket.send(json.dumps(frame))
        again = next(event for event in map(json.loads, socket) if event["type"] == "ack")
    assert again == ack
    assert alice_elsewhere.wait_for_end(ack["run_id"])["status"] in ENDED
    question, _ = alice_elsewhere.messages(conversation)
    assert question["content"] == f"Hi {key}"


@pytest.mark.mechanism("contract.once")
def test_concurrent_duplicates_at_all_web_processes_get_one_answer(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key = new_key("twice")
    conversation = alice.new_conversation()
    people = [alice, alice_elsewhere] * 5
    with ThreadPoolExecutor(len(people)) as threads:
        answers = list(
            threads.map(lambda person: person.post(conversation, key, ASYNC, client_id=key), people)
        )
    assert [answer.status_code for answer in answers] == [202] * len(people), [a.text for a in answers]
    [accepted] = {answer.text for answer in answers}
    run_id = json.loads(accepted)["run_id"]
    with contextlib.closing(
        SocketReader(installation.first, installation.tokens[PEOPLE[0]], conversation)
    ) as reader:
        reader.wait_for_end(run_id)
    facts = reader.story.facts
    assert [fact["run_id"] for fact in facts if fact["type"] == "run.started"] == [run_id]
    assert len(alice.messages(conversation)) == 2
    # On a busy machine the model's first word may come too late. The run then retries, with an event for each retry.
    repeated = [fact for fact in facts if fact["type"] == "run.notice" and fact["kind"] == "retrying"]
    assert len(script.requests(key)) == 1 + len(repeated), facts


@pytest.mark.mechanism("contract.once")
def test_an_idempotency_key_in_the_header_or_body_survives_a_restart(
    embedded: Installation, alice: Person, script: Script
) -> None:
    key = new_key("held")
    script.answer(key, "Once and for all.")
    conversation = alice.new_conversation()
    first = alice.post(conversation, f"Hello {key}", {"Idempotency-Key": key}, stream=False)
    assert first.json()["message"]["content"] == "Once and for all.", first.text
    embedded.first.restart()
    again = alice.post(conversation, f"Hello {key}", {"Idempotency-Key": key}, stream=False)
    assert (again.status_code, again.json()) == (200, first.json())
    same = alice.post(conversation, f"Hello {key}", client_id=key, stream=False)
    assert same.json() == first.json()
    other = alice.post(conversation, "Something else", {"Idempotency-Key": key}, stream=False)
    assert other.status_code == 422
    assert other.json()["error"]["code"] == "idempotency_mismatch"
    elsewhere = alice.post(alice.new_conversation(), f"Hello {key}", {"Idempotency-Key": key}, stream=False)
    assert elsewhere.status_code == 422
    assert len(alice.messages(conversation)) == 2
    assert len(script.requests(key)) == 1


@pytest.mark.mechanism("contract.order")
def test_concurrent_sends_leave_no_gaps_in_positions_and_events(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    """Eight senders use one conversation over two processes. Only messages sent during an answer are refused."""
    conversation = alice.new_conversation()
    key = new_key("order")

    def send(number: int) -> httpx2.Response:
        person = (alice, alice_elsewhere)[number % 2]
        return person.post(conversation, f"{key} {number}", stream=False)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(24)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    accepted = sum(answer.status_code == 200 for answer in answers)
    messages = alice.messages(conversation)
    assert [message["position"] for message in messages] == list(range(2 * accepted))
    assert [message["role"] for message in messages] == ["user", "assistant"] * accepted

    token = installation.tokens[PEOPLE[0]]
    stories = []
    for service in (installation.first, installation.second):
        reader = SocketReader(service, token, conversation)
        last_seq = alice.last_seq(conversation)
        reader.wait_for(lambda story: story.last_seq == last_seq, "all facts")  # noqa: B023
        reader.close()
        stories.append(reader.story.facts)
    assert stories[0] == stories[1], "every device sees the same order"
    for run_id in {fact["run_id"] for fact in stories[0] if "run_id" in fact}:
        types = [fact["type"] for fact in stories[0] if fact.get("run_id") == run_id]
        assert types.count("run.finished") == 1
        assert types[-1] == "run.finished"
