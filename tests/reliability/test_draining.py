"""On SIGTERM answers finish or are interrupted with their text, clients are notified, and the exit code is 0."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.reliability.compacting import compact, long_conversation
from tests.reliability.installation import PEOPLE, Installation
from tests.reliability.people import Person
from tests.reliability.readers import SocketReader, SseReader
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.behaviour import says
from tests.servers.waiting import accepts_connections, wait_for
from tests.servers.websocket import connect

RESTARTING = 1012


def test_a_graceful_shutdown_keeps_all_text_and_notifies_all_clients(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    short, long = new_key("short"), new_key("long")
    script.answer(short, says(words(25), hold_after=5))
    script.answer(long, slowly(words(2_000), rate=25))
    token = installation.tokens[PEOPLE[0]]
    first, second, third = (alice.new_conversation() for _ in range(3))
    readers = [kind(installation.first, token, second) for kind in (SocketReader, SseReader)]
    interrupted = alice.send(second, long)
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(Person(installation.client()).ask, third, long)
        for reader in readers:
            reader.wait_for(lambda story: "word5 " in str(story.texts), "some words")
        wait_for(
            lambda: "word0 " in str(alice.messages(third)), what="the answer that is waited for has begun"
        )
        finishing = alice.send(first, short)
        script.wait_for_request(short, event="first_token")
        ending = threads.submit(installation.first.stop)
        wait_for(lambda: not accepts_connections(installation.first.port), what="it drains")
        script.server.release()
        assert ending.result() == 0
        told = waiting.result()

    assert (told.status_code, told.json()["error"]["code"]) == (503, "interrupted")
    assert told.json()["error"]["details"]["message"]["content"].startswith("word0 ")
    socket, stream = readers
    assert socket.wait_for_close() == RESTARTING
    assert socket.close_reason
    stream.wait_for_close()
    assert stream.story.notices[-1]["code"] == "shutting_down"
    for reader in readers:
        assert reader.story.has_ended(interrupted["run_id"]), "it was told before the end"

    installation.start()
    assert alice_elsewhere.run(finishing["run_id"])["status"] == "complete"
    assert alice_elsewhere.text(first, finishing["answer_id"]) == words(25)
    run = alice_elsewhere.run(interrupted["run_id"])
    assert (run["status"], run["error"]["category"]) == ("interrupted", "interrupted")
    stored = alice_elsewhere.text(second, interrupted["answer_id"])
    for reader in readers:
        assert stored == reader.story.texts[interrupted["answer_id"]]
        assert stored.startswith(reader.story.streamed[interrupted["answer_id"]])


def test_a_message_sent_during_draining_is_stored_and_answered_later(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    """The message arrives over an open socket, because new connections are refused."""
    key, late = new_key("busy"), new_key("late")
    script.answer(key, slowly(words(2_000), rate=25))
    script.answer(late, "Answered later.")
    conversation, other = alice.new_conversation(), alice.new_conversation()
    sent = alice.send(conversation, key)
    alice.wait_for_text(conversation, sent["answer_id"], "word2")
    headers = {"Authorization": f"Bearer {installation.tokens[PEOPLE[0]]}"}
    frame = {"type": "message.send", "client_id": late, "conversation_id": other, "content": late}
    with connect(installation.first.ws_url, additional_headers=headers) as socket:
        ending = threading.Thread(target=installation.first.stop)
        ending.start()
        wait_for(lambda: not accepts_connections(installation.first.port), what="it drains")
        socket.send(json.dumps(frame))
        ack = next(event for event in map(json.loads, socket) if event["type"] == "ack")
        ending.join()
    installation.start()
    assert alice_elsewhere.wait_for_end(ack["run_id"])["status"] == "complete"
    assert [message["content"] for message in alice_elsewhere.messages(other)] == [late, "Answered later."]


def test_a_worker_finishes_its_summary_on_sigterm(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("warm")
    script.answer(key, slowly(f"The user counts notes. {key} {words(20)} WARM", rate=15), kind="summary")
    conversation = long_conversation(alice, key)
    compaction = compact(alice, conversation)
    script.wait_for_request(key, "summary", event="first_token")
    assert production.worker
    assert production.worker.stop() == 0
    alice.wait_for_compaction(conversation, compaction, "done")
    assert len(script.requests(key, "summary")) == 1
