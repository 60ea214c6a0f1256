"""Each summary is written once, whatever happens to workers, the broker's messages and the summary model."""

from __future__ import annotations

import time

import pytest
from redis import Redis as RedisClient

from tests.reliability.compacting import (
    compact,
    daily_sections,
    long_conversation,
    send_task,
    wait_for_idle_worker,
)
from tests.reliability.installation import Installation
from tests.reliability.people import Person
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.behaviour import ERRORS, fails, says
from tests.servers.waiting import wait_for


def assert_written_once(installation: Installation, alice: Person, conversation: str, mark: str) -> None:
    [row] = alice.compactions(conversation)
    assert row["status"] == "done"
    [entry] = alice.wait_for_entries(conversation)
    assert mark in entry["text"]
    wait_for(
        lambda: daily_sections(installation, conversation) > 0,
        what="the file is written",
    )
    assert daily_sections(installation, conversation) == 1


@pytest.mark.mechanism("cowagent.daily-file")
def test_a_summary_whose_worker_died_is_written_once_by_another(
    installation: Installation, alice: Person, script: Script
) -> None:
    key = new_key("worker-died")
    script.answer(
        key, slowly(words(200, "lost"), rate=10), f"The user counts notes. {key} SECOND", kind="summary"
    )
    conversation = long_conversation(alice, key)
    compaction = compact(alice, conversation)
    script.wait_for_request(key, "summary", event="first_token")
    installation.kill_workers()
    installation.start()
    row = alice.wait_for_compaction(conversation, compaction, "done")
    assert row["summary"].startswith("The user counts notes.")
    assert row["fallback_reason"] is None
    assert len(script.requests(key, "summary")) == 2
    assert_written_once(installation, alice, conversation, "SECOND")


@pytest.mark.mechanism("ours.one-checkpoint")
def test_a_task_delivered_several_times_is_done_once(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("doubled")
    script.answer(key, slowly(f"The user counts notes. {key} {words(15)} ONCE", rate=15), kind="summary")
    conversation = long_conversation(alice, key)
    compaction = compact(alice, conversation)
    for _ in range(6):
        send_task(production, "chatapp.compaction.tasks.compact", compaction)
    script.wait_for_request(key, "summary")
    for _ in range(6):
        send_task(production, "chatapp.compaction.tasks.compact", compaction)
    alice.wait_for_compaction(conversation, compaction, "done")
    send_task(production, "chatapp.compaction.tasks.compact", compaction)
    send_task(production, "chatapp.operations.tasks.sweep")
    wait_for_idle_worker(production)
    assert len(script.requests(key, "summary")) == 1
    assert_written_once(production, alice, conversation, "ONCE")


@pytest.mark.mechanism("contract.broker")
def test_a_compaction_whose_message_was_lost_is_found_by_the_sweep(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("lost-message")
    script.answer(key, f"The user counts notes. {key} FOUND", kind="summary")
    assert production.worker
    production.worker.stop()
    conversation = long_conversation(alice, key)
    compaction = compact(alice, conversation)
    with RedisClient.from_url(production.env["REDIS_URL"]) as client:
        client.flushall()
    production.start()
    alice.wait_for_compaction(conversation, compaction, "done")
    assert len(script.requests(key, "summary")) == 1
    assert_written_once(production, alice, conversation, "FOUND")


UNUSABLE = {
    "down": (ERRORS["server"](), "an internal error"),
    "wrong key": (ERRORS["wrong_key"](), "its key is not accepted"),
    "empty": (says(""), "nothing"),
    "a refusal": (says("I'm sorry, but I can't help with that."), "not a summary"),
    "garbage": (says("{}[]()!!! ... ??? ---- ==== %%%% //// ####"), "not a summary"),
    "repeating itself": (says(words(1, "again ") * 300), "not a summary"),
    "too long": (says(f"QX-00000 {words(4_000)}"), "tokens"),
    "an error page": (says("<!doctype html><html><body>502 Bad Gateway</body></html>"), "not a summary"),
    "cut": (says(words(30), fault="cut", fault_after=10), "the connection to it broke"),
}


@pytest.mark.mechanism("contract.summary")
@pytest.mark.parametrize("name", UNUSABLE)
def test_an_extract_replaces_an_unusable_summary_and_gives_the_reason(
    embedded: Installation, alice: Person, script: Script, name: str
) -> None:
    behaviour, why = UNUSABLE[name]
    key = new_key("unusable")
    script.answer(key, behaviour, kind="summary")
    conversation = long_conversation(alice, key)
    row = alice.wait_for_compaction(conversation, compact(alice, conversation), "done")
    assert why in row["fallback_reason"]
    assert "QX-000" in row["summary"], "facts of the originals"
    assert "again again" not in row["summary"]
    asked = len(script.requests(key, "summary"))
    assert asked <= 2, "no loop"

    answer = alice.ask(conversation, f"And now {key}?")
    assert answer.status_code == 200
    [request] = script.requests(key)
    assert any(row["summary"] in message["content"] for message in request.messages)
    assert len(script.requests(key, "summary")) == asked, "the next turn does not try again"
    assert len(alice.compactions(conversation)) == 1
    assert len(alice.messages(conversation)) == 42, "the originals stay"


def test_a_summary_request_is_retried_for_a_model_with_a_smaller_window(
    embedded: Installation, alice: Person, script: Script
) -> None:
    key = new_key("smaller-window")
    refusal = fails(400, "This model's maximum context length is 8000 tokens. Your prompt is too long.")
    script.answer(key, refusal, f"The user counts notes from QX-00000 on. {key}", kind="summary")
    conversation = long_conversation(alice, key)
    row = alice.wait_for_compaction(conversation, compact(alice, conversation), "done")
    assert (row["fallback_reason"], row["summary"][:22]) == (None, "The user counts notes ")
    assert len(script.requests(key, "summary")) == 2


def test_no_message_is_summarised_twice_as_a_conversation_grows(
    installation: Installation, alice: Person, script: Script
) -> None:
    """The summary model reads each message once, because a later summary extends the earlier one."""
    key = new_key("grows")
    script.answer(key, *[says(f"Summary {number} of {key}.") for number in range(1, 4)], kind="summary")
    conversation = long_conversation(alice, key, count=60)
    alice.wait_for_compaction(conversation, compact(alice, conversation), "done")
    for number in range(8):
        assert alice.ask(conversation, f"More {key} {number} QX-1000{number}").status_code == 200
    alice.wait_for_compaction(conversation, compact(alice, conversation), "done")

    rows = alice.compactions(conversation)
    covered = [
        position for row in rows for position in range(row["first_position"], row["last_position"] + 1)
    ]
    assert len(covered) == len(set(covered))
    texts = [request.text for request in script.requests(key, "summary")]
    for number in range(10):
        assert sum(f"QX-{number:05d}" in text for text in texts) == 1
    assert f"Summary 1 of {key}." in texts[1]
    assert len(alice.entries(conversation)) == 2


def test_a_compaction_that_keeps_killing_workers_is_given_up(
    production: Installation, alice: Person, script: Script
) -> None:
    """The model must not be called endlessly, whatever kills the workers."""
    key = new_key("killer")
    script.answer(key, slowly(words(300), rate=10), kind="summary")
    conversation = long_conversation(alice, key)
    compaction = compact(alice, conversation)
    for attempt in (1, 2):
        script.wait_for_request(key, "summary", count=attempt, event="first_token")
        production.kill_workers()
        production.start()
        sweep_until(production, alice, conversation, script, key, attempt)
    row = alice.wait_for_compaction(conversation, compaction, "done")
    assert "worker" in row["fallback_reason"]
    assert len(script.requests(key, "summary")) == 2


def sweep_until(
    production: Installation, alice: Person, conversation: str, script: Script, key: str, attempt: int
) -> None:
    """Send sweeps like beat, but more often, until a worker has taken up the compaction again."""

    def was_taken_up() -> bool:
        send_task(production, "chatapp.operations.tasks.sweep")
        time.sleep(0.5)
        is_done = alice.compactions(conversation)[-1]["status"] == "done"
        return is_done or len(script.requests(key, "summary")) > attempt

    wait_for(was_taken_up, what="it is taken up again")
