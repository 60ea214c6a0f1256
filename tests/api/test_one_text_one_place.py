"""Each text is stored once: events, sent requests and traces refer to it, and are complete when they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.events import MessageCreated, MessagePinned
from chatapp.accounts.models import User
from chatapp.context.models import RequestText
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from chatapp.realtime import event_log, replay
from chatapp.realtime.event_log import facts_committed, read_after
from tests.api import own_tools
from tests.api.own_tools import look_up
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send
from tests.api.stored_texts import copies_of, said, verified
from tests.api.tool_talk import asks_for
from tests.context_engine.chatting import Chat, chatting, on_a_loop
from tests.memory_store.rows import NOW, say
from tests.memory_store.rows import new_conversation as new_row
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def published() -> Iterator[list[dict[str, Any]]]:
    """Yield the list of events that the readers of this process receive immediately."""
    seen: list[dict[str, Any]] = []

    def note(sender: Any, payloads: list[dict[str, Any]], **_: Any) -> None:
        seen.extend(payloads)

    facts_committed.connect(note)
    try:
        yield seen
    finally:
        facts_committed.disconnect(note)


def same_but_for_now(event: dict[str, Any]) -> dict[str, Any]:
    """Reduce the message to what a replay shows as it was sent, because the rest is its present state."""
    if "message" not in event:
        return event
    return {
        **event,
        "message": {name: event["message"][name] for name in ("id", "content", "status", "position")},
    }


def assert_replayed(replayed: list[dict[str, Any]], live: list[dict[str, Any]]) -> None:
    """Compare the events in `live` only: facts learned from the turn may be published later."""
    seqs = {event["seq"] for event in live}
    again = [event for event in replayed if event["seq"] in seqs]
    assert live
    assert [same_but_for_now(event) for event in again] == [same_but_for_now(event) for event in live]


@on_a_loop
async def test_a_plain_turn_stores_a_long_answer_once(alice: User) -> None:
    long = " ".join(f"Sentence {n} of the long answer." for n in range(2_000))
    async with chatting(alice, count=2) as chat:
        chat.server.script(says(long))
        with published() as live:
            answer = await chat.ask("Tell me the long story of the harbour master, please.")
        assert answer["message"]["content"] == long
        assert await in_database(lambda: copies_of(said()))() == 0
        replayed = await in_database(read_after)(UUID(chat.conversation), 0)
    assert_replayed(replayed, live)


async def test_a_turn_with_tools_is_stored_once_and_replayed_as_it_was_sent(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    with own_tools.at_hand("look_up"):
        look_up.answer = lambda shelf: "The shelf holds seven books on lighthouses.\n" * 2_000
        model_server.script(
            asks_for(
                "look_up", text="Let me look at the shelf of lighthouses.", say="lighthouses of the north"
            ),
            says("There are seven books on lighthouses."),
            says("Yes, there are seven of them."),
        )
        async with running_service():
            conversation = await new_conversation(alice_program)
            with published() as live:
                first = (await send(alice_program, conversation, "How many books are on it?")).json()
                second = (await send(alice_program, conversation, "Are you quite sure of that?")).json()
            replayed = await in_database(read_after)(UUID(conversation), 0)
            assert await verified(alice_program, first["run_id"]) == [True, True]
            assert await verified(alice_program, second["run_id"]) == [True]
    assert await in_database(lambda: copies_of(said()))() == 0
    assert_replayed(replayed, live)


async def recalled_in(chat: Chat) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Return an answer that used recall, and the recall events of its turn as sent and as replayed."""
    await chat.compact()
    with published() as live:
        answer = await chat.ask("What is the code of note 3, QX-00003, and of note 8, QX-00008?")
    replayed = await in_database(read_after)(UUID(chat.conversation), 0)
    return answer, [e for e in live if e["type"] == "recall"], [e for e in replayed if e["type"] == "recall"]


@on_a_loop
async def test_summaries_and_recalled_texts_are_stored_once(alice: User) -> None:
    async with chatting(alice) as chat:
        answer, live, replayed = await recalled_in(chat)
        assert "QX-00003" in str(live)
        assert replayed == live
        assert await verified(chat.program, answer["run_id"]) == [True]
        kept = [text async for text in RequestText.objects.exclude(source__in=["system", "tools"])]
        assert {text.source for text in kept} == {"summary", "reminder", "recall"}
        summaries = [row["summary"] for row in await chat.compactions()]
        assert await in_database(lambda: copies_of([*said(), *summaries]))() == 0
        shown = (await chat.program.get(f"conversations/{chat.conversation}/messages")).json()["items"][-1]
        assert shown["recalled"] == live[0]["items"]


@on_a_loop
async def test_text_blanked_at_its_source_is_in_no_event_and_no_request(alice: User) -> None:
    async with chatting(alice) as chat:
        answer, *_ = await recalled_in(chat)
        await Message.objects.filter(conversation=chat.conversation, position=3).aupdate(parts=[])
        replayed = await in_database(read_after)(UUID(chat.conversation), 0)
        request = (await chat.program.get(f"runs/{answer['run_id']}/requests/1")).json()
        assert "QX-00003" not in json.dumps([event for event in replayed if event["type"] == "recall"])
        [piece] = [piece for piece in request["pieces"] if piece["source"] == "recall"]
        assert (piece["state"], request["verified"]) == ("forgotten", False)


def pin_all(conversation: Conversation, count: int) -> None:
    for row in Message.objects.filter(conversation=conversation).order_by("position")[:count]:
        shape = message_shape(row)
        where = {"conversation_id": str(conversation.pk), "at": NOW}
        event_log.append(
            conversation, MessageCreated(**where, message=shape), MessagePinned(**where, message=shape)
        )


def test_the_number_of_queries_for_a_page_of_the_log_does_not_depend_on_its_length(alice: User) -> None:
    counts = []
    for count in (2, 200):
        conversation = new_row(alice)
        say(conversation, *(f"Number {n}" for n in range(count)))
        conversation.refresh_from_db()
        pin_all(conversation, count)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert len(read_after(conversation.pk, 0, 500)) >= 2 * count
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_tokens_of_the_messages_on_a_page_of_the_log_are_limited(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "MAX_PAGE_TOKENS", 100)
    conversation = new_row(alice)
    say(conversation, *(f"Number {number}. " * (200 if number == 3 else 5) for number in range(8)))
    conversation.refresh_from_db()
    pin_all(conversation, 8)
    sizes = {str(row.pk): row.token_estimate for row in Message.objects.all()}
    last, pages = 0, []
    while page := read_after(conversation.pk, last, 500):
        last = page[-1]["seq"]
        pages.append(page)
    assert [event["seq"] for page in pages for event in page] == [*range(1, conversation.last_seq + 1)]
    for page in pages:
        read = {event["message"]["id"] for event in page if "message" in event}
        assert sum(sizes[pk] for pk in read) <= 100 or len(page) == 1
    assert len(pages) < 8, "as much as may be is read at once"
