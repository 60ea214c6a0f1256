"""The numbered facts of a conversation, appended in the action's transaction and published after its commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

from agents.events import Fact
from chatapp.conversations.models import Conversation
from chatapp.operations.database.statements import insert_rows, update_row
from chatapp.realtime.models import Event
from chatapp.realtime.replay import full_events, within_bound
from chatapp.runs.models import Run

facts_appended = Signal()
"""Sent inside the transaction with `conversation` and `facts` (numbered), for rows that must exist if the facts do."""
facts_committed = Signal()
"""Sent after commit with `conversation_id`, `user_id` (UUIDs) and `payloads` (the events as sent)."""


def append(
    conversation: Conversation, *facts: Fact, run: Run | None = None, changed: Sequence[str] = ()
) -> int:
    """Store the facts with their numbers, and the conversation's counters and `changed` columns. Return the last number
    used. `conversation` must be locked in this transaction."""
    return append_all(conversation, [(fact, run) for fact in facts], changed)


def append_all(
    conversation: Conversation, facts: Sequence[tuple[Fact, Run | None]], changed: Sequence[str] = ()
) -> int:
    """Store facts like `append`, each with its run."""
    first = conversation.last_seq + 1
    numbered = [fact.model_copy(update={"seq": seq}) for seq, (fact, _) in enumerate(facts, start=first)]
    # Dump each fact once, for both the log and the readers.
    payloads = [fact.payload() for fact in numbered]
    runs = [run.pk if run is not None else None for _, run in facts]
    insert_rows(
        [
            Event(
                conversation_id=conversation.pk,
                seq=told["seq"],
                type=fact.type,
                run_id=run_id,
                payload=fact.stored(told),
                at=fact.at,
            )
            for fact, told, run_id in zip(numbered, payloads, runs, strict=True)
        ]
    )
    conversation.last_seq += len(facts)
    update_row(conversation, "last_seq", "next_position", *changed)
    facts_appended.send(Conversation, conversation=conversation, facts=numbered)
    transaction.on_commit(
        partial(
            # The facts are stored, so an error in publishing them must not look like a failure of the action.
            facts_committed.send_robust,
            sender=Conversation,
            conversation_id=conversation.pk,
            user_id=conversation.user_id,
            payloads=payloads,
        )
    )
    return conversation.last_seq


def read_after(conversation_id: UUID, seq: int, limit: int = 500) -> list[dict[str, Any]]:
    """Return the next events after `seq` in order, as they were sent: at most `limit`, fewer if messages are long, none
    if the conversation is being deleted."""
    owned = Event.objects.filter(conversation_id=conversation_id, conversation__user__isnull=False)
    rows = owned.filter(seq__gt=seq).order_by("seq")
    return full_events(within_bound(list(rows[:limit])))


def last_seqs(conversation_ids: Iterable[str]) -> dict[UUID, int]:
    """Return the number of the newest fact of each conversation."""
    return dict(Conversation.objects.filter(pk__in=list(conversation_ids)).values_list("pk", "last_seq"))
