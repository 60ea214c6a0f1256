"""Forgetting hundreds of messages takes few statements and short transactions, and survives a kill between them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.requests.manifest import hash_text
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.context.models import RequestText
from chatapp.context.selectors import stored_request
from chatapp.conversations.models import Message
from chatapp.features.sharing.actions import share_conversation
from chatapp.features.sharing.selectors import token_of
from chatapp.forgetting import services
from chatapp.forgetting import tasks as forgetting_tasks
from chatapp.forgetting.actions import forget as forget_actions
from chatapp.forgetting.actions.forget import ENTRIES, MESSAGES
from chatapp.forgetting.actions.removals import TOLD_AT_ONCE, publish_forgotten_later
from chatapp.forgetting.models import ForgetReceipt, Removal, Tombstone
from chatapp.forgetting.services import forget_all, forget_day, forget_entry, forget_message
from chatapp.forgetting.trash.services import move_to_trash
from chatapp.long_term.actions.entries import add_entry, record_entry
from chatapp.operations import clock
from chatapp.operations.database.work_budget import Budget, Pace
from chatapp.realtime.event_log import read_after
from chatapp.realtime.models import Event
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.actions.sources import note_read
from chatapp.recall.analysis import vocabulary
from chatapp.recall.models import SearchDocument
from chatapp.recall.user_search import search_memory
from chatapp.runs.models import Run, ToolCall
from tests.forgetting.everywhere import tables_with
from tests.forgetting.lives import send_request
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "heliotrope"
SPAN = 30
LOCKS = 4 if connection.features.has_select_for_update else 0
"""Statements of a transaction that only lock rows or find the rows to lock."""
MOST_TURNS = 20


def said_day(user: User, count: int) -> None:
    """Store a conversation of one day with runs and their tool calls, summaries and their entries."""
    chat = new_conversation(user, SECRET)
    rows = say(chat, *(f"The {SECRET} of row {number} has {number % 7} leaves." for number in range(count)))
    runs = [
        Run(conversation=chat, user=user, question=asked, answer=told, status="complete", created_at=NOW)
        for asked, told in zip(rows[2::2], rows[3::2], strict=True)
    ]
    Run.objects.bulk_create(runs)
    ToolCall.objects.bulk_create([_call(run) for run in runs])
    content = json.dumps([f"It was said of the {SECRET}."])
    RequestText.objects.create(conversation=chat, sha256="0" * 64, source="recall", content=content)
    for first in range(0, count, SPAN):
        summary = finished_compaction(chat, first, summary=f"The {SECRET} has leaves.")
        Compaction.objects.filter(pk=summary.pk).update(last_position=first + SPAN - 1)
        record_entry(
            compaction=summary,
            text=f"The {SECRET} of row {first} has leaves.",
            first_message_id=rows[first].pk,
            last_message_id=rows[first + SPAN - 1].pk,
            at=NOW + timedelta(days=3),
        )
    index_conversation(chat.pk)


def _call(run: Run) -> ToolCall:
    part = {"type": "tool_result", "call_id": "2", "name": "search", "text": f"The {SECRET} has leaves."}
    return ToolCall(
        run=run,
        step=1,
        ordinal=2,
        call_id="2",
        name="search",
        arguments=f'{{"query": "{SECRET}"}}',
        state="done",
        is_idempotent=True,
        result=[part],
        requested_at=NOW,
    )


UNHURRIED = Pace(seconds=float("inf"), budget=Budget(clock=lambda: 0.0), sleep=lambda _: None)
"""A pace whose pieces end by rows and characters, never by time, whatever the load of the machine."""


def count_statements(work: Callable[[], object]) -> list[int]:
    """Return the number of statements outside transactions, then the number in each transaction."""
    with CaptureQueriesContext(connection) as sent:
        work()
    counts = [0]
    is_open = False
    for query in sent.captured_queries:
        if query["sql"].startswith("BEGIN"):
            counts.append(0)
            is_open = True
        elif query["sql"].startswith("COMMIT"):
            is_open = False
        else:
            counts[-1 if is_open else 0] += 1
    return counts


def test_forgetting_one_message_takes_few_statements(alice: User) -> None:
    """Never raise this limit."""
    chat = new_conversation(alice)
    [told, *_] = say(chat, f"My favourite is {SECRET}.", "Noted.", "And the plum?", "It blooms.")
    index_conversation(chat.pk)
    [_, inside, *rest] = count_statements(lambda: forget_message(alice, told.pk, now=clock.now()))
    assert inside <= 45 + LOCKS
    assert sum(rest) == 0


@pytest.mark.usefixtures("no_files")
def test_statements_per_transaction_do_not_grow_with_the_messages_of_a_day(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "IN_REQUEST", UNHURRIED)
    taken = {}
    for count, day in ((2 * SPAN, 0), (4 * SPAN, 10)):
        said_day(alice, count)
        Message.objects.filter(created_at__lt=NOW + timedelta(days=1)).update(
            created_at=NOW + timedelta(days=day + 5)
        )
        Run.objects.filter(created_at=NOW).update(created_at=NOW + timedelta(days=day + 5))
        when = (NOW + timedelta(days=day + 5)).date()
        taken[count] = count_statements(lambda when=when: forget_day(alice, when, now=clock.now()))
        assert not Message.objects.filter(created_at__date=when).exclude(parts=[]).exists()
    few, many = taken.values()
    assert max(many[1:]) <= max(few[1:]) + 10
    assert max(many[1:]) <= 68 + LOCKS, "may only fall"
    pieces = 2 * SPAN // MESSAGES
    assert sum(many) - sum(few) <= (74 + LOCKS) * pieces, "may only fall; of each the index is cleaned, too"
    assert messages_told_of() == Counter(Message.objects.values_list("pk", flat=True))
    assert tables_with(SECRET) == []
    assert not SearchDocument.objects.exists()
    assert not Removal.objects.exists()


class KilledError(Exception):
    pass


@pytest.mark.mechanism("forgetting.cut-short")
@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize("before", ["lock_chosen", "note_forgotten", "work_on"])
def test_the_sweep_finishes_an_interrupted_forgetting(
    alice: User, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Kill it before or at the end of the second transaction, or before the deletions after the last transaction."""
    said_day(alice, 2 * SPAN)

    where = services if before == "work_on" else forget_actions
    lives = iter([] if before == "work_on" else [getattr(where, before)])

    def die(*given: Any, **named: Any) -> Any:
        for act in lives:
            return act(*given, **named)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(where, before, die)
        with pytest.raises(KilledError):
            forget_day(alice, NOW.date(), now=clock.now())
    if before != "work_on":
        assert Message.objects.filter(parts=[]).count() == MESSAGES
    if before == "work_on":
        assert tables_with(SECRET) == ["chatapp_requesttext"]
        assert search_memory(user_id=alice.pk, query=SECRET, limit=10, now=clock.now(), zone=UTC) == []
        assert messages_told_of() == Counter()
        publish_forgotten_later(Removal.objects.get())
        assert messages_told_of().total() == TOLD_AT_ONCE
    sweep(clock.now())
    assert tables_with(SECRET) == []
    assert not SearchDocument.objects.exists()
    assert not Removal.objects.exists()
    assert Tombstone.objects.filter(receipt__what="day").exists()
    assert messages_told_of() == Counter(Message.objects.values_list("pk", flat=True)), "each once"


@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize("how", ["a fork", "a copy of a shared chat", "the trash"])
def test_a_conversation_cannot_be_copied_or_trashed_between_two_pieces(
    alice: User,
    bob: User,
    api_client: Callable[..., Client],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    said_day(alice, 2 * SPAN)
    [chat] = alice.conversations.all()
    shared = {"user": alice, "conversation_id": str(chat.pk), "expires_at": None, "now": clock.now()}
    share, _ = share_conversation(**shared)
    who, address = alice, f"/api/v1/conversations/{chat.pk}/fork"
    if how == "a copy of a shared chat":
        who, address = bob, f"/api/v1/shared/{token_of(share.pk)}/copy"
    elif how == "the trash":
        address = f"/api/v1/conversations/{chat.pk}/trash"
    real, statuses = forget_actions.lock_chosen, []

    def lock_chosen(*given: Any, **named: Any) -> Any:
        if Message.objects.filter(parts=[]).exists():
            answer = api_client(who).post(address, {}, content_type="application/json")
            statuses.append(answer.status_code)
        return real(*given, **named)

    monkeypatch.setattr(forget_actions, "lock_chosen", lock_chosen)
    forget_day(alice, NOW.date(), now=clock.now())
    assert statuses
    assert set(statuses) == {409}
    assert tables_with(SECRET) == []


@pytest.mark.usefixtures("no_files")
def test_an_overtaken_forgetting_continues_where_the_other_process_is(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease expires between two pieces; the other process forgets the rest but has not sent the events yet."""
    said_day(alice, 2 * SPAN)

    real = forget_actions.prepare_forgetting
    pieces = iter([real])

    def prepare_forgetting(*given: Any, **named: Any) -> Any:
        for read in pieces:
            return read(*given, **named)
        monkeypatch.setattr(forget_actions, "prepare_forgetting", real)
        ahead = real(*given, **named)
        with monkeypatch.context() as patch:
            patch.setattr(services, "work_on", lambda *_: None)
            sweep(clock.now(), turns=1)
        return ahead

    monkeypatch.setattr(forget_actions, "prepare_forgetting", prepare_forgetting)
    forget_day(alice, NOW.date(), now=clock.now())
    sweep(clock.now())
    assert tables_with(SECRET) == []
    assert not SearchDocument.objects.exists()
    assert messages_told_of() == Counter(Message.objects.values_list("pk", flat=True)), "each once"


@pytest.mark.usefixtures("no_files")
def test_an_overtaken_forgetting_keeps_what_the_other_process_noted(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process forgets the second chat, which its user moves to the trash before this one reads it."""
    chats = [new_conversation(alice) for _ in range(2)]
    content = json.dumps([f"It was said of the {SECRET}."])
    for chat in chats:
        say(chat, *(f"The {SECRET} of row {number} has leaves." for number in range(MESSAGES)))
        RequestText.objects.create(conversation=chat, sha256="0" * 64, source="recall", content=content)
    real = forget_actions.prepare_forgetting
    pieces = iter([real])

    def prepare_forgetting(*given: Any, **named: Any) -> Any:
        for read in pieces:
            return read(*given, **named)
        monkeypatch.setattr(forget_actions, "prepare_forgetting", real)
        with monkeypatch.context() as patch:
            patch.setattr(services, "work_on", lambda *_: None)
            sweep(clock.now(), turns=1)
        move_to_trash(alice, str(chats[1].pk), days=30, now=clock.now())
        return real(*given, **named)

    monkeypatch.setattr(forget_actions, "prepare_forgetting", prepare_forgetting)
    forget_day(alice, NOW.date(), now=clock.now())
    sweep(clock.now())
    assert tables_with(SECRET) == []
    assert not Removal.objects.exists()


@pytest.mark.usefixtures("no_files")
def test_stored_request_texts_are_hidden_until_they_are_deleted(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_day(alice, 2 * SPAN)
    run = Run.objects.first()
    assert run is not None
    text = f"It was said of the {SECRET}."
    send_request(run, text)
    RequestText.objects.filter(sha256=hash_text(text)).update(content=json.dumps([text]))
    assert SECRET in str(stored_request(run, 1).texts)
    monkeypatch.setattr(services, "work_on", lambda *_: None)
    forget_day(alice, NOW.date(), now=clock.now())
    assert tables_with(SECRET) == ["chatapp_requesttext"]
    assert stored_request(run, 1).texts == {}


def messages_told_of() -> Counter[UUID]:
    """Return the number of `message.forgotten` events by message."""
    chat_ids = (
        Event.objects.filter(type="message.forgotten").values_list("conversation", flat=True).distinct()
    )
    events = [event for pk in chat_ids for event in read_after(pk, 0)]
    return Counter(UUID(event["message"]["id"]) for event in events if event["type"] == "message.forgotten")


def sweep(now: datetime, turns: int = MOST_TURNS) -> None:
    """Continue all removals like the worker, repeatedly because a slow machine needs more than one turn."""
    for _ in range(turns):
        Removal.objects.update(lease_expires_at=now - timedelta(hours=1))
        for removal_id in list(Removal.objects.values_list("pk", flat=True)):
            forgetting_tasks.remove_rest(str(removal_id))


@pytest.mark.usefixtures("no_files")
def test_forgetting_all_entries_takes_transactions_of_constant_size(alice: User) -> None:
    taken = {}
    for count in (ENTRIES, 2 * ENTRIES):
        for number in range(count):
            add_entry(user=alice, text=f"Bay {number} has {SECRET}.", day=NOW.date(), now=NOW)
        taken[count] = count_statements(lambda: forget_all(alice, now=clock.now()))
        receipt = ForgetReceipt.objects.latest("at")
        assert receipt.removed["entries"] == count
        assert receipt.tombstones.count() == count
        assert tables_with(SECRET) == []
    few, many = taken.values()
    assert max(many[1:]) <= max(few[1:])
    assert len(many) - len(few) <= 2, "a transaction more, with its index"


@pytest.mark.usefixtures("no_files")
def test_tool_results_are_compared_before_anything_is_locked(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    said_day(alice, SPAN)
    entry = add_entry(user=alice, text=f"The {SECRET} stands in bay nine.", day=NOW.date(), now=NOW)
    for run in Run.objects.all():
        note_read(run.pk, [entry.pk])
    asked: list[tuple[bool, str]] = []
    real = vocabulary.rare_words

    def rare_words(text: str) -> frozenset[str]:
        asked.append((connection.in_atomic_block, text))
        return real(text)

    monkeypatch.setattr(vocabulary, "rare_words", rare_words)
    forget_entry(alice, entry.pk, now=clock.now())
    returned = [is_locked for is_locked, text in asked if '"query"' in text]
    assert returned
    assert not any(returned)
    assert not ToolCall.objects.filter(arguments__contains=SECRET).exists()
