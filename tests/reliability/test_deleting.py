"""A deleted conversation stays deleted despite concurrent writes. The clean-up spares conversations in use."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.reliability.compacting import compact, daily_sections, long_conversation
from tests.reliability.installation import PEOPLE, Installation
from tests.reliability.people import ASYNC, Person
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.waiting import wait_for
from tests.servers.websocket import connect, receive

CONVERSATIONS = 12
LOOKS = 10


def delete(person: Person, conversation: str) -> None:
    answer = person.client.delete(f"/api/v1/conversations/{conversation}")
    assert answer.status_code == 204, answer.text


def assert_gone(installation: Installation, person: Person, conversation: str, key: str) -> None:
    path = f"/api/v1/conversations/{conversation}"
    for address in ("", "/messages", "/events", "/compactions", "/export"):
        assert person.client.get(f"{path}{address}").status_code == 404, address
    assert person.post(conversation, "Still there?", ASYNC).status_code == 404
    assert person.client.post(f"{path}/context", json={"query": key}).status_code == 404
    listed = person.client.get("/api/v1/conversations", params={"limit": 100}).json()["items"]
    assert conversation not in {row["id"] for row in listed}
    found = person.client.get("/api/v1/memory/search", params={"q": key}).json()["items"]
    assert not [item for item in found if key in item["text"]]
    assert not person.entries(conversation)
    assert daily_sections(installation, conversation) == 0
    assert key not in "".join(
        file.read_text() for file in (Path(installation.env["DATA_DIR"]) / "memory").glob("*/*.md")
    )


@pytest.mark.mechanism("contract.deletion")
def test_a_running_answer_cannot_restore_its_deleted_conversation(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    """The other process deletes the conversation while this one writes and stores the answer."""
    key = new_key("deleted")
    script.answer(key, slowly(f"{key} {words(2_000)}", rate=25))
    conversation = alice.new_conversation(title=key)
    token = installation.tokens[PEOPLE[0]]
    sent = alice.send(conversation, key)
    alice.wait_for_text(conversation, sent["answer_id"], "word5")
    delete(alice_elsewhere, conversation)
    assert_gone(installation, alice, conversation, key)
    script.wait_for_request(key, event="lost")
    assert_gone(installation, alice, conversation, key)
    for address in (
        f"runs/{sent['run_id']}",
        f"runs/{sent['run_id']}/stop",
        f"runs/{sent['run_id']}/continue",
    ):
        method = "GET" if address.endswith(sent["run_id"]) else "POST"
        assert alice.client.request(method, f"/api/v1/{address}").status_code == 404
    headers = {"Authorization": f"Bearer {token}"}
    with connect(installation.second.ws_url, additional_headers=headers) as socket:
        for frame in (
            f'{{"type": "subscribe", "conversation_id": "{conversation}", "after_seq": 0}}',
            f'{{"type": "message.sync", "message_id": "{sent["answer_id"]}", "length": 0}}',
            f'{{"type": "message.send", "client_id": "{key}", "conversation_id": "{conversation}", "content": "x"}}',
        ):
            socket.send(frame)
            assert receive(socket, "error")["code"] == "not_found"


@pytest.mark.mechanism("contract.deletion")
def test_a_running_summary_cannot_restore_its_deleted_conversation(
    installation: Installation, alice: Person, script: Script
) -> None:
    key = new_key("deleted-summary")
    script.answer(key, slowly(f"The user counts notes. {key} {words(25)}", rate=12), kind="summary")
    conversation = long_conversation(alice, key)
    compact(alice, conversation)
    script.wait_for_request(key, "summary", event="first_token")
    delete(alice, conversation)
    assert_gone(installation, alice, conversation, key)
    wait_for(
        lambda: {"finished", "lost"} & set(script.requests(key, "summary")[0].times),
        what="the summary ends",
    )
    for _ in range(LOOKS):
        assert_gone(installation, alice, conversation, key)


def test_sends_concurrent_with_deletions_leave_no_conversation_or_run(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key = new_key("either")
    conversations = [alice.new_conversation(title=key) for _ in range(CONVERSATIONS)]

    def send(conversation: str) -> httpx2.Response:
        return alice.post(conversation, key, ASYNC)

    def remove(conversation: str) -> httpx2.Response:
        return alice_elsewhere.client.delete(f"/api/v1/conversations/{conversation}")

    with ThreadPoolExecutor(8) as threads:
        sent = [threads.submit(send, conversation) for conversation in conversations]
        removed = [threads.submit(remove, conversation) for conversation in conversations]
    assert {answer.result().status_code for answer in sent} <= {202, 404}
    assert {answer.result().status_code for answer in removed} == {204}
    for conversation in conversations:
        assert alice.client.get(f"/api/v1/conversations/{conversation}").status_code == 404
    for answer in sent:
        if answer.result().status_code == 202:
            assert alice.client.get(f"/api/v1/runs/{answer.result().json()['run_id']}").status_code == 404


AGE_AND_CLEAN_UP = """
from datetime import timedelta
from chatapp.operations import clock
from chatapp.conversations.models import Conversation
from chatapp.operations.tasks import clean_up
Conversation.objects.filter(pk__in={ids!r}).update(last_activity_at=clock.now() - timedelta(days=31))
clean_up()
"""


@pytest.mark.mechanism("contract.retention")
def test_the_clean_up_spares_conversations_in_use(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    """The conversations are a month old. During the clean-up, half of them get a new message."""
    key = new_key("aged")
    conversations = [alice.new_conversation(title=f"{key} {at}") for at in range(CONVERSATIONS)]
    pinned, busy = alice.new_conversation(title=f"{key} pinned"), alice.new_conversation(title=f"{key} busy")
    alice.client.patch(f"/api/v1/conversations/{pinned}", json={"pinned": True})
    script.answer(key, slowly(words(400), rate=4))  # longer than the rest of the test on a busy machine
    run = alice.send(busy, key)
    everything = [*conversations, pinned, busy]
    with ThreadPoolExecutor(1) as threads:
        cleaning = threads.submit(
            installation.first.manage, "shell", "-v", "0", "-c", AGE_AND_CLEAN_UP.format(ids=everything)
        )
        answers = come_back(alice_elsewhere, conversations[::2], cleaning)

    assert len(answers) == CONVERSATIONS // 2
    for conversation, answer in answers.items():
        if answer.status_code == 202:
            alice.wait_for_end(answer.json()["run_id"])
            assert len(alice.messages(conversation)) == 2, "accepted is stored"
        else:
            assert answer.status_code == 404
            assert alice.client.get(f"/api/v1/conversations/{conversation}").status_code == 404
    for conversation in conversations[1::2]:
        assert alice.client.get(f"/api/v1/conversations/{conversation}").status_code == 404
    for kept in (pinned, busy):
        assert alice.client.get(f"/api/v1/conversations/{kept}").status_code == 200
    alice.client.post(f"/api/v1/runs/{run['run_id']}/stop")
    assert alice.wait_for_end(run["run_id"])["status"] == "stopped"


def come_back(person: Person, conversations: list[str], cleaning: Future[str]) -> dict[str, httpx2.Response]:
    """Send one message to each conversation, one after another, as soon as they are old. Then wait for the clean-up."""
    path = f"/api/v1/conversations/{conversations[0]}"
    young = person.client.get(path).json()["last_activity_at"]
    while person.client.get(path).json().get("last_activity_at") == young:
        if cleaning.done():
            cleaning.result()  # Raises the clean-up's error, if any.
        time.sleep(0.01)  # Leaves CPU time to the process of the clean-up, which is starting.
    answers = {}
    for conversation in conversations:
        answers[conversation] = person.post(conversation, "I am back", ASYNC)
    cleaning.result()
    return answers
