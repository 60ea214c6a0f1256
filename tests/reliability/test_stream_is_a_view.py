"""Every reader ends with the stored text, even if events are lost, duplicated or cut off on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from redis import Redis as RedisClient

from tests.reliability.installation import PEOPLE, Installation
from tests.reliability.people import Person
from tests.reliability.readers import SocketReader, SseReader
from tests.reliability.scripting import Script, new_key, slowly
from tests.servers.behaviour import says

POEM = " ".join(
    f"{word}{number}" for number in range(30) for word in ("落花流水", "👩‍👩‍👧‍👦", "naïve", "𝒳🙂")
)


def read(installation: Installation, conversation: str, *kinds: type) -> list[SocketReader | SseReader]:
    """Return a reader of each kind at each web process."""
    token = installation.tokens[PEOPLE[0]]
    services = (installation.first, installation.second)
    return [kind(service, token, conversation) for service in services for kind in kinds or (SocketReader,)]


@pytest.mark.mechanism("contract.view")
def test_readers_at_every_process_end_with_the_stored_text(
    installation: Installation, alice: Person, script: Script
) -> None:
    key = new_key("poem")
    script.answer(key, slowly(POEM, rate=40))
    conversation = alice.new_conversation()
    readers = read(installation, conversation, SocketReader, SseReader)
    sent = alice.send(conversation, key)
    for reader in readers:
        reader.wait_for_end(sent["run_id"])
    assert alice.text(conversation, sent["answer_id"]) == POEM
    for reader in readers:
        assert reader.story.streamed[sent["answer_id"]] == POEM, "offsets count characters"
        assert reader.story.texts[sent["answer_id"]] == POEM
        assert reader.story.deltas > 5
        assert reader.story.facts == readers[0].story.facts
        reader.close()


@pytest.mark.mechanism("contract.view")
def test_a_reader_that_reconnects_during_an_answer_continues_after_its_last_event(
    installation: Installation, alice: Person, script: Script
) -> None:
    key = new_key("again")
    script.answer(key, slowly(POEM, rate=40))
    conversation = alice.new_conversation()
    readers = read(installation, conversation, SocketReader, SseReader)
    sent = alice.send(conversation, key)
    for reader in readers:
        reader.wait_for(lambda story: story.texts, "the first words")
        reader.close()
        reader.wait_for_close()
        reader.connect()
    for reader in readers:
        reader.wait_for_end(sent["run_id"])
        assert reader.story.streamed[sent["answer_id"]] == POEM
        assert reader.story.types(sent["run_id"])[-1] == "run.finished"
        reader.close()


class NeverAsks(SocketReader):
    """A reader that never requests missed text."""

    def _ask_for_rest(self, message_id: str) -> None:
        pass


@pytest.mark.parametrize("kinds", [[NeverAsks], [NeverAsks] * 3, [SseReader]], ids=["one", "three", "sse"])
def test_a_reader_that_connects_during_an_answer_gets_the_text_so_far(
    installation: Installation, alice: Person, script: Script, kinds: list[type[NeverAsks | SseReader]]
) -> None:
    key = new_key("midway")
    script.answer(key, says(POEM, rate=40, reasoning="First this. Then that."))
    conversation = alice.new_conversation()
    sent = alice.send(conversation, key)
    with closing(SocketReader(installation.first, installation.tokens[PEOPLE[0]], conversation)) as early:
        early.wait_for(lambda story: story.texts, "the first words")
    readers = read(installation, conversation, *kinds)
    for reader in readers:
        reader.wait_for_end(sent["run_id"])
        assert reader.story.streamed[sent["answer_id"]] == POEM
        thoughts = [event for event in reader.story.notices if event["type"] == "reasoning.delta"]
        assert ("First this. Then that.", 0) in [(event["text"], event["offset"]) for event in thoughts]
        reader.close()


def test_a_late_reader_gets_everything_from_the_log(
    installation: Installation, alice: Person, script: Script
) -> None:
    key = new_key("late")
    script.answer(key, POEM)
    conversation = alice.new_conversation()
    sent = alice.send(conversation, key)
    alice.wait_for_end(sent["run_id"])
    for reader in read(installation, conversation, SocketReader, SseReader):
        reader.wait_for_end(sent["run_id"])
        assert reader.story.texts[sent["answer_id"]] == POEM
        assert [fact["seq"] for fact in reader.story.facts] == list(
            range(1, alice.last_seq(conversation) + 1)
        )
        reader.close()


def test_a_cursor_beyond_the_log_is_reset(installation: Installation, alice: Person) -> None:
    conversation = alice.new_conversation()
    token = installation.tokens[PEOPLE[0]]
    for reader in (
        SocketReader(installation.first, token, conversation, after_seq=99),
        SseReader(installation.first, token, conversation, after_seq=99),
    ):
        assert reader.wait_for(lambda story: _has_reset(story.notices, conversation), "a reset")
        reader.close()


def _has_reset(notices: list[dict[str, object]], conversation: str) -> bool:
    return any(n["type"] == "reset" and n["conversation_id"] == conversation for n in notices)


@contextmanager
def doubling(url: str) -> Iterator[list[bytes]]:
    """Deliver all messages between the processes twice. Yield the messages that were repeated."""
    seen: set[bytes] = set()
    doubled: list[bytes] = []
    stop = threading.Event()
    client = RedisClient.from_url(url)
    hearing = client.pubsub(ignore_subscribe_messages=True)
    hearing.psubscribe("palimpsest.*__group__*")

    def repeat() -> None:
        while not stop.is_set():
            message = hearing.get_message(timeout=0.1)
            if message and message["data"] not in seen:
                seen.add(message["data"])
                client.publish(message["channel"], message["data"])
                doubled.append(message["data"])

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield doubled
    finally:
        stop.set()
        thread.join()
        hearing.close()
        client.close()


def test_duplicate_messages_between_processes_are_shown_once(
    production: Installation, alice: Person, script: Script
) -> None:
    key = new_key("doubled")
    script.answer(key, slowly(POEM, rate=40))
    conversation = alice.new_conversation()
    token = production.tokens[PEOPLE[0]]
    reader = SocketReader(production.second, token, conversation)
    with doubling(production.env["REDIS_URL"]) as doubled:
        sent = alice.send(conversation, key)
        reader.wait_for_end(sent["run_id"])
    assert len(doubled) > 5
    assert reader.story.streamed[sent["answer_id"]] == POEM
    reader.close()


@pytest.mark.parametrize("reader_kind", [SocketReader, SseReader])
def test_readers_recover_text_from_messages_lost_between_processes(
    production: Installation, alice: Person, script: Script, reader_kind: type[SocketReader]
) -> None:
    """The connection between the processes is cut during an answer, and messages sent meanwhile are lost."""
    key = new_key("lost")
    script.answer(key, slowly(" ".join([POEM] * 10), rate=40))  # runs until it is stopped
    conversation = alice.new_conversation()
    reader = reader_kind(production.second, production.tokens[PEOPLE[0]], conversation)
    sent = alice.send(conversation, key)
    reader.wait_for(lambda story: story.texts, "the first words")
    with RedisClient.from_url(production.env["REDIS_URL"]) as client:
        for _ in range(20):
            client.client_kill_filter(_type="pubsub")
            time.sleep(0.02)
    if reader_kind is SocketReader:
        reader.wait_for(lambda story: story.gaps, "something was missed")
        have = len(reader.story.texts[sent["answer_id"]])
        reader.wait_for(lambda story: len(story.texts[sent["answer_id"]]) > have + 200, "it catches up")
    alice.client.post(f"/api/v1/runs/{sent['run_id']}/stop")
    reader.wait_for_end(sent["run_id"])
    stored = alice.text(conversation, sent["answer_id"])
    assert reader.story.texts[sent["answer_id"]] == stored
    if reader_kind is SocketReader:
        assert stored.startswith(reader.story.streamed[sent["answer_id"]])
    reader.close()
