"""A reader receives every fact once and in order, even if frames from the hub are lost or repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction

from agents.events import ConversationUpdated
from chatapp.accounts.models import User
from chatapp.conversations.access import lock_conversation
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.realtime import event_log
from chatapp.realtime.hub import Frame, conversation_topic, encode_frame, hub, user_topic
from chatapp.realtime.subscriptions import MAX_QUEUED_FRAMES, Connection

pytestmark = pytest.mark.django_db(transaction=True)


def write_facts(user: User, conversation: Conversation, count: int) -> None:
    with transaction.atomic():
        row = lock_conversation(user, conversation.pk)
        facts = [
            ConversationUpdated(
                conversation_id=str(row.pk),
                at=clock.now(),
                conversation={"title": "", "model": None, "number": number},
            )
            for number in range(count)
        ]
        event_log.append(row, *facts)


@pytest.fixture
def conversation(alice: User) -> Conversation:
    row = create_conversation(user=alice, now=clock.now())
    write_facts(alice, row, 5)
    return row


def frame_of(conversation: Conversation, seq: int) -> Frame:
    return encode_frame(event_log.read_after(conversation.pk, seq - 1)[0])


def delta(conversation: Conversation, text: str) -> Frame:
    return encode_frame(
        {"type": "text.delta", "conversation_id": str(conversation.pk), "offset": 0, "text": text}
    )


async def drain(connection: Connection) -> list[int | None]:
    return [frame.seq for frame in await all_frames(connection)]


async def all_frames(connection: Connection) -> list[Frame]:
    connection.close("test")
    return [frame async for frame in connection.frames()]


opened: list[Connection] = []


@pytest.fixture(autouse=True)
def nobody_stays_in_the_hub() -> Iterator[None]:
    yield
    async_to_sync(leave)()


async def leave() -> None:
    while opened:
        await opened.pop().unwatch_all()


async def watching(conversation: Conversation, after_seq: int) -> Connection:
    connection = Connection()
    opened.append(connection)
    await connection.watch(UUID(str(conversation.pk)), after_seq)
    return connection


async def test_a_reader_receives_the_facts_after_its_cursor(conversation: Conversation) -> None:
    connection = await watching(conversation, after_seq=2)
    assert await drain(connection) == [3, 4, 5]


async def test_a_fact_whose_frame_was_lost_is_read_from_the_log(
    alice: User, conversation: Conversation
) -> None:
    topic = conversation_topic(conversation.pk)
    connection = await watching(conversation, after_seq=5)
    await sync_to_async(write_facts)(alice, conversation, 3)
    connection.deliver(topic, await sync_to_async(frame_of)(conversation, 7))
    connection.catch_up(str(conversation.pk), 8)
    assert await drain(connection) == [6, 7, 8]


async def test_a_frame_that_arrives_twice_is_delivered_once(alice: User, conversation: Conversation) -> None:
    topic = conversation_topic(conversation.pk)
    connection = await watching(conversation, after_seq=5)
    await sync_to_async(write_facts)(alice, conversation, 1)
    frame = await sync_to_async(frame_of)(conversation, 6)
    for _ in range(3):
        connection.deliver(topic, frame)
    assert await drain(connection) == [6]


async def test_facts_written_while_the_log_is_read_are_not_missed(
    alice: User, conversation: Conversation
) -> None:
    topic = conversation_topic(conversation.pk)
    connection = await watching(conversation, after_seq=0)
    seen: list[int | None] = []
    async for frame in connection.frames():
        seen.append(frame.seq)
        if frame.seq == 2:
            await sync_to_async(write_facts)(alice, conversation, 2)
            connection.deliver(topic, await sync_to_async(frame_of)(conversation, 7))
        if frame.seq == 7:
            connection.close("test")
    assert seen == [1, 2, 3, 4, 5, 6, 7]


async def test_deltas_keep_their_place_between_facts(alice: User, conversation: Conversation) -> None:
    topic = conversation_topic(conversation.pk)
    connection = await watching(conversation, after_seq=5)
    await sync_to_async(write_facts)(alice, conversation, 1)
    connection.deliver(topic, delta(conversation, "a"))
    connection.deliver(topic, await sync_to_async(frame_of)(conversation, 6))
    connection.deliver(topic, delta(conversation, "b"))
    assert await drain(connection) == [None, 6, None]


async def test_facts_already_in_the_log_wait_for_the_deltas_before_them(
    alice: User, conversation: Conversation
) -> None:
    """The end of a quick answer may be in the log while its beginning is still read, and a stream closes at the end."""
    topic = conversation_topic(conversation.pk)
    connection = await watching(conversation, after_seq=3)
    await sync_to_async(write_facts)(alice, conversation, 1)
    connection.deliver(topic, delta(conversation, "a"))
    connection.deliver(topic, await sync_to_async(frame_of)(conversation, 6))
    assert await drain(connection) == [4, 5, None, 6]


async def test_facts_of_a_watched_conversation_are_not_repeated_by_the_users_topic(
    alice: User, conversation: Conversation
) -> None:
    connection = await watching(conversation, after_seq=5)
    await sync_to_async(write_facts)(alice, conversation, 1)
    frame = await sync_to_async(frame_of)(conversation, 6)
    connection.deliver(user_topic(alice.pk), frame)
    connection.deliver(conversation_topic(conversation.pk), frame)
    assert await drain(connection) == [6]


async def test_facts_of_a_conversation_that_is_not_watched_yet_have_no_number(
    alice: User, conversation: Conversation
) -> None:
    """The tab's request to watch may be on its way, and numbered facts follow it in order."""
    connection = Connection()
    opened.append(connection)
    await hub.start()
    await hub.subscribe(connection, user_topic(alice.pk))
    await sync_to_async(write_facts)(alice, conversation, 1)
    await asyncio.sleep(0)
    await connection.watch(UUID(str(conversation.pk)), 0)
    told = [(frame.seq, "seq" in json.loads(frame.text)) for frame in await all_frames(connection)]
    await hub.unsubscribe(connection, user_topic(alice.pk))
    await hub.stop()
    assert told == [(None, False), *((number, True) for number in range(1, 7))]


async def test_the_connection_of_a_reader_that_falls_behind_is_closed(conversation: Conversation) -> None:
    connection = await watching(conversation, after_seq=5)
    for _ in range(MAX_QUEUED_FRAMES + 1):
        connection.deliver(conversation_topic(conversation.pk), delta(conversation, "x"))
    assert connection.closed_because == "too_slow"
