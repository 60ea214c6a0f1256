"""A summary that lost forgotten text is rewritten by a model, with retries, and its memory entry is recorded again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from agents.background.summarise import SummaryResult
from agents.types import TokenUsage
from chatapp.accounts.models import User
from chatapp.compaction import rewriting, tasks
from chatapp.compaction.actions.rewrites import FIRST_PAUSE, LONGEST_PAUSE
from chatapp.compaction.models import Compaction
from chatapp.compaction.rewriting import waiting_rewrites
from chatapp.compaction.work import CompactionWork
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.forgetting.actions.collecting import Chosen
from chatapp.forgetting.actions.forget import MESSAGES, Done, forget_pieces
from chatapp.forgetting.actions.removals import begin_forgetting_many
from chatapp.forgetting.models import ForgetReceipt
from chatapp.forgetting.services import forget_entry, forget_message
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.database.work_budget import UNBOUNDED, PacedTransactions
from chatapp.providers.models import Usage
from tests.context_engine.chatting import make_model
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say
from tests.servers.behaviour import Behaviour, fails, says
from tests.servers.openai_server import ModelServer
from tests.servers.recording import RecordedRequest

Clients = Callable[..., Client]
DENTIST = "My dentist is Dr Quillfeather in Elm Street 14."
CONTRACT = "My contract ends in 2027."


def summarised(user: User, entry: str) -> tuple[list[Message], Compaction]:
    conversation = new_conversation(user)
    rows = say(conversation, DENTIST, "Noted.", CONTRACT, "I see.")
    Message.objects.update(token_estimate=40)
    row = finished_compaction(conversation, summary=f"{DENTIST} {CONTRACT}")
    Compaction.objects.filter(pk=row.pk).update(last_position=3, message_count=4, summary_tokens=200)
    record_entry(compaction=row, text=entry, first_message_id=rows[0].pk, last_message_id=rows[3].pk, at=NOW)
    return rows, row


@pytest.mark.django_db(transaction=True)
def test_rewriting_a_summary_is_retried_after_growing_pauses_during_an_outage(alice: User) -> None:
    rows, row = summarised(alice, DENTIST)
    forget_message(alice, rows[0].pk, now=clock.now())
    with ModelServer() as server:
        make_model(server, name="Main", is_default=True)
        for kind in (401, 404):
            server.defaults["summary"] = fails(kind, "It is away.")
            tasks.rewrite_summary(str(row.pk))
            row.refresh_from_db()
            assert row.rewrite_since is not None, kind
            assert row.rewrite_after is not None
            assert row.pk not in waiting_rewrites(clock.now() + timedelta(seconds=30))
            assert row.pk in waiting_rewrites(clock.now() + 2 * FIRST_PAUSE)
        Compaction.objects.update(rewrite_since=clock.now() - timedelta(hours=2))
        tasks.rewrite_summary(str(row.pk))
        assert row.pk not in waiting_rewrites(clock.now() + timedelta(minutes=100))
        assert row.pk in waiting_rewrites(clock.now() + LONGEST_PAUSE)
        server.defaults["summary"] = says(CONTRACT)
        tasks.rewrite_summary(str(row.pk))
    row.refresh_from_db()
    assert (row.rewrite_since, row.fallback_reason) == (None, "")
    assert CONTRACT in row.summary


@pytest.mark.django_db(transaction=True)
def test_model_calls_of_a_failed_rewrite_are_counted(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, row = summarised(alice, DENTIST)
    forget_message(alice, rows[0].pk, now=clock.now())
    real = rewriting.ask_for_summary

    async def ask_and_fail(work: CompactionWork, usages: list[TokenUsage]) -> SummaryResult:
        await real(work, usages=usages)
        raise RuntimeError

    monkeypatch.setattr(rewriting, "ask_for_summary", ask_and_fail)
    with ModelServer(summary_default=says(CONTRACT)) as server:
        make_model(server, name="Main", is_default=True)
        tasks.rewrite_summary(str(row.pk))
    assert [usage.purpose for usage in Usage.objects.all()] == ["compaction"]
    row.refresh_from_db()
    assert row.rewrite_since is not None


@pytest.mark.django_db(transaction=True)
def test_an_entry_that_was_emptied_is_recorded_again_with_the_remaining_text(alice: User) -> None:
    rows, row = summarised(alice, f"- {DENTIST}")
    forget_message(alice, rows[0].pk, now=clock.now())
    assert not MemoryEntry.objects.exists()
    with ModelServer(summary_default=says("Their contract ends in 2027.")) as server:
        make_model(server, name="Main", is_default=True)
        tasks.rewrite_summary(str(row.pk))
    [entry] = MemoryEntry.objects.filter(user=alice)
    assert "2027" in entry.text
    assert (entry.first_message_id, entry.last_message_id) == (rows[0].pk, rows[3].pk)


@pytest.mark.django_db(transaction=True)
def test_a_summary_of_text_that_the_next_piece_forgets_is_rewritten_again(alice: User) -> None:
    """Later pieces find the extract of the first one, so nothing in the summary's row shows that they ran."""
    conversation = new_conversation(alice)
    small_talk = [f"Row {number} is empty." for number in range(2 * MESSAGES)]
    rows = say(conversation, CONTRACT, "I see.", *small_talk, DENTIST, "Noted.")
    row = finished_compaction(conversation, summary=f"{CONTRACT} {DENTIST}")
    Compaction.objects.filter(pk=row.pk).update(last_position=len(rows) - 1, summary_tokens=200)
    Message.objects.update(token_estimate=40)
    pieces = forget_in_pieces(alice, rows[2:])
    next(pieces)

    def forget_the_rest() -> None:
        try:
            list(pieces)
        finally:
            connection.close()

    def answer(request: RecordedRequest) -> Behaviour:
        other = threading.Thread(target=forget_the_rest)  # the ORM cannot run on the server's event loop
        other.start()
        other.join()
        return says(f"{CONTRACT} {DENTIST}" if "Quillfeather" in str(request.body) else CONTRACT)

    with ModelServer(summary_default=answer) as server:
        make_model(server, name="Main", is_default=True)
        tasks.rewrite_summary(str(row.pk))
        row.refresh_from_db()
        assert "Quillfeather" not in row.summary
        assert not MemoryEntry.objects.filter(text__contains="Quillfeather").exists()
        assert Usage.objects.filter(purpose="compaction").count() == 1, "the call was made"
        [waiting] = waiting_rewrites(clock.now() + timedelta(minutes=1))
        tasks.rewrite_summary(str(waiting))
    row.refresh_from_db()
    assert (row.rewrite_since, row.fallback_reason, row.summary) == (None, "", CONTRACT)


def forget_in_pieces(user: User, rows: list[Message]) -> Iterator[Done]:
    chosen = Chosen(user, clock.now(), frozenset(one.pk for one in rows))
    removal = begin_forgetting_many(chosen, what=ForgetReceipt.What.CHOSEN)
    return forget_pieces(removal, user, clock.now(), PacedTransactions(UNBOUNDED, lambda _: False))


@pytest.mark.django_db
def test_messages_of_another_branch_are_no_source_of_an_entry(alice: User) -> None:
    """A message that only the other branch shows stays, although the entry contains the same words."""
    conversation = new_conversation(alice)
    [_, first] = say(conversation, "Hello.", "Good to see you.")
    [beside, _] = branch_off(conversation, first, DENTIST, "Noted.")
    [own, last] = say(conversation, DENTIST, "Noted.")
    assert first.position < beside.position < own.position
    entry = MemoryEntry.objects.create(
        user=alice,
        day=NOW.date(),
        conversation=conversation,
        text=DENTIST,
        first_message_id=first.pk,
        last_message_id=last.pk,
        created_at=NOW,
    )
    done = forget_entry(alice, entry.pk, now=clock.now())
    for row in (own, beside):
        row.refresh_from_db()
    assert own.parts == []
    assert beside.parts
    assert done.proposal is None or str(beside.pk) in str(done.proposal.items)


def branch_off(conversation: Conversation, after: Message, *texts: str) -> list[Message]:
    """Add messages after this one on a new branch, and return them."""
    main = conversation.branch
    assert main is not None
    conversation.branch = Branch.objects.create(
        conversation=conversation, lineage=[[str(main.pk), after.position]]
    )
    rows = say(conversation, *texts)
    conversation.branch = main
    return rows
