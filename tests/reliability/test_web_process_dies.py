"""After kill -9 of the writing process the shown text is stored, every run ends, and users can continue."""

from __future__ import annotations

import json
import threading

import pytest
from websockets.exceptions import ConnectionClosed

from tests.reliability.installation import PEOPLE, Installation, kill_group
from tests.reliability.people import Person
from tests.reliability.readers import SocketReader
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.behaviour import fails, says
from tests.servers.service import Service
from tests.servers.waiting import PATIENCE_S, wait_for
from tests.servers.websocket import connect

RUNS_AT_ONCE = 15
ANSWER = words(1_500, "漢字🙂")
"""Takes minutes to write, so that its stored text was not stored at its end."""


class Watcher:
    """Records how many characters of each answer were shown."""

    def __init__(self, service: Service, token: str, conversations: list[str]) -> None:
        self.shown: dict[str, int] = {}
        self._ready = threading.Event()
        arguments = (service.ws_url, {"Authorization": f"Bearer {token}"}, conversations)
        self._thread = threading.Thread(target=self._read, args=arguments, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def _read(self, url: str, headers: dict[str, str], conversations: list[str]) -> None:
        with connect(url, additional_headers=headers, max_size=None) as socket:
            for conversation in conversations:
                socket.send(
                    json.dumps({"type": "subscribe", "conversation_id": conversation, "after_seq": 0})
                )
            self._ready.set()
            try:
                for event in map(json.loads, socket):
                    if event["type"] == "text.delta":
                        self.shown[event["message_id"]] = event["offset"] + len(event["text"])
            except ConnectionClosed:
                return


@pytest.mark.mechanism("contract.partial")
def test_shown_text_is_stored_soon_even_with_many_concurrent_answers(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key = new_key("many")
    script.answer(key, slowly(ANSWER, rate=10))
    conversations = [alice.new_conversation() for _ in range(RUNS_AT_ONCE)]
    watcher = Watcher(installation.first, installation.tokens[PEOPLE[0]], conversations)
    runs = [alice.send(conversation, f"{key} {number}") for number, conversation in enumerate(conversations)]
    wait_for(lambda: len(watcher.shown) == RUNS_AT_ONCE, what="all speak")
    shown = dict(watcher.shown)
    for conversation, run in zip(conversations, runs, strict=True):
        length = shown[run["answer_id"]]
        wait_for(lambda: len(alice.text(conversation, run["answer_id"])) >= length, what="it is stored")  # noqa: B023
    kill_group(installation.first)
    installation.start()

    for conversation, run in zip(conversations, runs, strict=True):
        ended = alice_elsewhere.wait_for_end(run["run_id"])
        assert (ended["status"], ended["error"]["category"]) == ("interrupted", "interrupted")
        stored = alice_elsewhere.text(conversation, run["answer_id"])
        assert ANSWER.startswith(stored)
        assert len(stored) >= shown[run["answer_id"]] > 0


@pytest.mark.mechanism("contract.ends")
def test_an_interrupted_answer_can_be_continued_and_retried(
    installation: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key = new_key("go-on")
    script.answer(key, slowly(words(2_000), rate=20), "and so it ended.", "A better one.")
    conversation = alice.new_conversation()
    sent = alice.send(conversation, key)
    alice.wait_for_text(conversation, sent["answer_id"], "word5")
    kill_group(installation.first)
    installation.start()
    run = alice_elsewhere.wait_for_end(sent["run_id"])
    assert "kept" in run["error"]["message"]

    more = alice_elsewhere.act(f"runs/{sent['run_id']}/continue")
    assert alice_elsewhere.wait_for_end(more["run_id"])["status"] == "complete"
    asked = script.requests(key)[-1].messages
    # Recalled text, for the question and for the continuation, may come in between.
    begun = [message["content"] for message in asked[:-1] if message["role"] == "assistant"][-1]
    assert begun.startswith("word0 "), asked
    assert "word5" in begun, asked
    again = alice_elsewhere.act(f"conversations/{conversation}/messages/{sent['answer_id']}/regenerate")
    assert alice_elsewhere.wait_for_end(again["run_id"])["status"] == "complete"
    shown = [message["content"] for message in alice_elsewhere.messages(conversation)]
    assert shown == [key, "A better one."]
    first, second = (alice_elsewhere.text(conversation, row["answer_id"]) for row in (sent, more))
    assert first.startswith("word0 ")
    assert second == "and so it ended."


@pytest.mark.mechanism("contract.ends")
def test_another_process_ends_the_runs_of_a_dead_one_and_notifies_readers(
    production: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    """The dead process is not restarted, and beat is stopped."""
    key = new_key("reaped")
    script.answer(key, slowly(words(2_000), rate=20))
    conversation = alice.new_conversation()
    reader = SocketReader(production.second, production.tokens[PEOPLE[0]], conversation)
    sent = alice.send(conversation, key)
    reader.wait_for(lambda story: story.texts, "the first words")
    # The shown text may be a second ahead of the stored one.
    alice.wait_for_text(conversation, sent["answer_id"], "word0")
    assert production.beat
    production.beat.stop()
    kill_group(production.first)
    reader.wait_for_end(sent["run_id"])
    [finished] = [fact for fact in reader.story.facts if fact["type"] == "run.finished"]
    assert finished["status"] == "interrupted"
    assert reader.story.texts[sent["answer_id"]] == alice_elsewhere.text(conversation, sent["answer_id"])
    assert reader.story.texts[sent["answer_id"]].startswith(reader.story.streamed[sent["answer_id"]][:1])
    reader.close()


@pytest.mark.mechanism("contract.lease")
def test_a_queued_run_of_a_dead_process_is_taken_over_by_another(
    production: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    """The process ends after its commit, before it starts the run."""
    key = new_key("adopted")
    script.answer(key, "Taken up.")
    conversation = alice.new_conversation()
    sent = queue_without_start(production, conversation, key)
    assert alice_elsewhere.wait_for_end(sent["run_id"])["status"] == "complete"
    assert alice_elsewhere.text(conversation, sent["answer_id"]) == "Taken up."


def test_a_queued_run_is_started_after_a_restart_however_late(
    embedded: Installation, alice: Person, script: Script
) -> None:
    key = new_key("restarted")
    script.answer(key, "Better late than never.")
    conversation = alice.new_conversation()
    kill_group(embedded.first)
    sent = queue_without_start(embedded, conversation, key, age_s=3_600)
    embedded.start()
    assert alice.wait_for_end(sent["run_id"])["status"] == "complete"
    assert alice.text(conversation, sent["answer_id"]) == "Better late than never."


def queue_without_start(
    installation: Installation, conversation: str, text: str, age_s: int = 0
) -> dict[str, str]:
    """Store the rows that a process leaves if it dies between its commit and the start of the run. Return the ids of
    the run and the answer."""
    code = f"""
from datetime import timedelta
from chatapp.operations import clock
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.accounts.models import User
receipt = send_message(
    user=User.objects.get(email={PEOPLE[0]!r}), conversation_id={conversation!r}, new=NewMessage({text!r}),
    model=None, now=clock.now() - timedelta(seconds={age_s}),
)
print("receipt", receipt.run_id, receipt.answer_id)
"""
    printed = installation.first.manage("shell", "-v", "0", "-c", code)
    _, run_id, answer_id = next(line for line in printed.splitlines() if line.startswith("receipt")).split()
    return {"run_id": run_id, "answer_id": answer_id}


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("before \x00 after", "before \ufffd after"),
        ("half \ud83d and more", "half \ufffd and more"),
        ("\ud83d\ude00 in one piece", "😀 in one piece"),
        ("\ufeffmark \u2028line", "\ufeffmark \u2028line"),
    ],
)
def test_an_answer_that_no_database_can_store_is_repaired_and_shown(
    installation: Installation, alice: Person, script: Script, said: str, stored: str
) -> None:
    key = new_key("odd")
    script.answer(key, says(said))
    conversation = alice.new_conversation()
    reader = SocketReader(installation.second, installation.tokens[PEOPLE[0]], conversation)
    reader.wait_until_subscribed()
    sent = alice.send(conversation, key)
    reader.wait_for_end(sent["run_id"])
    assert alice.text(conversation, sent["answer_id"]) == stored
    assert reader.story.streamed[sent["answer_id"]] == reader.story.texts[sent["answer_id"]] == stored
    reader.close()


def test_a_provider_error_that_no_database_can_store_ends_its_run(
    installation: Installation, alice: Person, script: Script
) -> None:
    key = new_key("odd-error")
    script.answer(key, fails(400, "No \x00 and no \ud83d, please."))
    sent = alice.send(alice.new_conversation(), key)
    run = alice.wait_for_end(sent["run_id"])
    assert (run["status"], run["error"]["category"]) == ("failed", "bad_request")
