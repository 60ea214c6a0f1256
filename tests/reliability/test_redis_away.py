"""Redis is emptied, stopped, frozen and restarted: nothing visible is lost, nothing hangs, messages are accepted."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis as RedisClient

from tests.reliability.compacting import compact, long_conversation
from tests.reliability.installation import PEOPLE, Installation
from tests.reliability.people import Person
from tests.reliability.readers import SocketReader, SseReader
from tests.reliability.scripting import Script, new_key, slowly, words
from tests.servers.people import PASSWORD


@contextmanager
def stopped(production: Installation) -> Iterator[None]:
    assert production.redis
    production.redis.kill()
    try:
        yield
    finally:
        production.redis.start_again()


@contextmanager
def frozen(production: Installation) -> Iterator[None]:
    """Freeze Redis: it accepts connections but never answers, which is worse than refusing them."""
    assert production.redis
    assert production.redis.process
    production.redis.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        production.redis.process.send_signal(signal.SIGCONT)


def flush(production: Installation) -> None:
    with RedisClient.from_url(production.env["REDIS_URL"]) as client:
        client.flushall()


@pytest.mark.mechanism("contract.broker")
def test_emptying_redis_during_an_answer_loses_no_text(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("flushed")
    text = words(60)
    script.answer(key, slowly(text, rate=40))
    conversation = alice.new_conversation()
    token = production.tokens[PEOPLE[0]]
    readers = [
        kind(service, token, conversation)
        for service in production.webs
        for kind in (SocketReader, SseReader)
    ]
    sent = alice.send(conversation, key)
    readers[-1].wait_for(lambda story: story.texts, "the first words")
    flush(production)
    for reader in readers:
        reader.wait_for_end(sent["run_id"])
        assert reader.story.streamed[sent["answer_id"]] == text
        reader.close()


def test_emptying_redis_during_a_compaction_loses_no_summary(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("flushed-summary")
    script.answer(key, slowly(f"The user counts notes. {key} {words(20, 'fact')}", rate=15), kind="summary")
    conversation = long_conversation(alice, key)
    compaction = compact(alice, conversation)
    script.wait_for_request(key, "summary")
    flush(production)
    alice.wait_for_compaction(conversation, compaction, "done")
    assert len(script.requests(key, "summary")) == 1
    assert len(alice.wait_for_entries(conversation)) == 1


def test_a_worker_survives_a_redis_outage_during_a_task(
    production: Installation, alice: Person, script: Script
) -> None:
    """One of the worker's two processes has a task to acknowledge, the other waits for Redis."""
    key = new_key("mid-task")
    script.answer(key, slowly(f"The user counts notes. {key} {words(40, 'fact')}", rate=13), kind="summary")
    slow, given_meanwhile = long_conversation(alice, key), long_conversation(alice, new_key("meanwhile"))
    summarised = compact(alice, slow)
    script.wait_for_request(key, "summary")
    with stopped(production):
        asked_for = compact(alice, given_meanwhile)
        time.sleep(6)
    alice.wait_for_compaction(slow, summarised, "done")
    alice.wait_for_compaction(given_meanwhile, asked_for, "done")
    assert len(script.requests(key, "summary")) == 1
    assert production.worker
    assert production.worker.is_running


def test_tasks_sent_after_redis_was_emptied_are_done(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("after-flush")
    conversation = long_conversation(alice, key)
    flush(production)
    alice.wait_for_compaction(conversation, compact(alice, conversation), "done")


@pytest.mark.mechanism("contract.broker")
@pytest.mark.parametrize("away", [stopped, frozen], ids=["stopped", "frozen"])
def test_without_redis_answers_continue_and_readers_catch_up_afterwards(
    production: Installation, alice: Person, alice_elsewhere: Person, script: Script, away
) -> None:
    key = new_key("without")
    text = words(200)
    script.answer(key, slowly(text, rate=30))
    conversation, other = alice.new_conversation(), alice.new_conversation()
    unsummarised = long_conversation(alice, key)
    token = production.tokens[PEOPLE[0]]
    near = SocketReader(production.first, token, conversation)
    far = SocketReader(production.second, token, conversation)
    sent = alice.send(conversation, key)
    for reader in (near, far):
        reader.wait_for(lambda story: story.texts, "the first words")

    with away(production):
        have = len(near.story.texts[sent["answer_id"]])
        more = alice.send(other, f"Accepted without {key}")
        third = alice_elsewhere.send(alice_elsewhere.new_conversation(), f"Accepted elsewhere without {key}")
        last = alice.send(alice.new_conversation(), f"And again without {key}")

        near.wait_for(lambda story: len(story.texts[sent["answer_id"]]) > have + 20, "words without Redis")
        late = SocketReader(production.first, token, conversation)
        late.wait_for(lambda story: story.texts, "a new reader in the writer's process")
        compaction = compact(alice, unsummarised)
        sign_in(production)
        near.wait_for_end(sent["run_id"])
        late.wait_for_end(sent["run_id"])
        far.wait_for_end(sent["run_id"])
        assert alice_elsewhere.text(conversation, sent["answer_id"]) == text
        for run in (more, third, last):
            assert alice.wait_for_end(run["run_id"])["status"] == "complete"
    for reader in (near, far, late):
        assert reader.story.texts[sent["answer_id"]] == text
        reader.close()
    alice.wait_for_compaction(unsummarised, compaction, "done")
    assert len(script.requests(key, "summary")) == 1
    assert_line_between_processes(production, alice, script)


def assert_line_between_processes(production: Installation, alice: Person, script: Script) -> None:
    """Check that deltas reach the other process live again, for a conversation without earlier readers."""
    key = new_key("back")
    script.answer(key, slowly(words(40), rate=40))
    conversation = alice.new_conversation()
    reader = SocketReader(production.second, production.tokens[PEOPLE[0]], conversation)
    sent = alice.send(conversation, key)
    reader.wait_for(lambda story: story.texts, "words from the other process")
    reader.wait_for_end(sent["run_id"])
    reader.close()


def sign_in(production: Installation) -> None:
    """Sign in like a browser, because allauth counts the attempts in the cache."""
    with production.first.client() as browser:
        page = browser.get("/accounts/login/")
        assert page.status_code == 200, page.text[:500]
        form = {"login": PEOPLE[1], "password": PASSWORD, "csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        answer = browser.post("/accounts/login/", data=form, headers={"Origin": production.first.url})
    assert answer.status_code == 302, answer.status_code
    assert answer.headers["location"] == "/"


def test_a_reader_that_connects_without_redis_gets_deltas_once_redis_is_back(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("came")
    script.answer(key, slowly(words(2_000), rate=25))
    conversation = alice.new_conversation()
    with stopped(production):
        sent = alice.send(conversation, key)
        reader = SocketReader(production.second, production.tokens[PEOPLE[0]], conversation)
        reader.wait_for(lambda story: "run.started" in story.types(), "what is in the log")
    reader.wait_for(lambda story: story.deltas, "words")
    alice.client.post(f"/api/v1/runs/{sent['run_id']}/stop")
    reader.wait_for_end(sent["run_id"])
    assert reader.story.texts[sent["answer_id"]] == alice.text(conversation, sent["answer_id"])
    reader.close()


def test_stop_reaches_the_writing_process_without_redis(
    production: Installation, alice: Person, alice_elsewhere: Person, script: Script
) -> None:
    key = new_key("stopped")
    script.answer(key, slowly(words(2_000), rate=20))
    conversation = alice.new_conversation()
    sent = alice.send(conversation, key)
    alice.wait_for_text(conversation, sent["answer_id"], "word3")
    with stopped(production):
        assert alice_elsewhere.client.post(f"/api/v1/runs/{sent['run_id']}/stop").status_code == 200
        assert alice_elsewhere.wait_for_end(sent["run_id"])["status"] == "stopped"
