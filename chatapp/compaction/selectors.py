"""Reads compactions: lists for users and workers, spans, and values for planning."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, Sum

from chatapp.accounts.models import User
from chatapp.compaction import schemas
from chatapp.compaction.models import Compaction
from chatapp.conversations.branches import messages_between, visible_compactions, visible_messages
from chatapp.conversations.message_values import MESSAGE_COLUMNS, messages_from_columns
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.operations.database.access import find_row, parse_id
from chatapp.operations.workers.leases import is_overdue
from chatapp.runs.models import Run
from memory.types import Message as MessageValue


def accessible_compaction(user: User, conversation_id: str | UUID, compaction_id: str | UUID) -> Compaction:
    """Return a compaction of the user's own. Raise NotFound."""
    rows = Compaction.objects.filter(conversation__user=user, conversation_id=parse_id(conversation_id))
    return find_row(rows, compaction_id)


def compaction_list(branch: Branch) -> list[dict[str, Any]]:
    """Return the compactions that cover only messages visible in this branch, oldest first."""
    rows = visible_compactions(branch).order_by("created_at", "first_position", "pk")
    return [schemas.compaction_shape(row) for row in rows]


def exported_compactions(conversation: Conversation) -> list[dict[str, Any]]:
    """Return the finished compactions of all branches, oldest first, each with its branch and the one it continues."""
    rows = Compaction.objects.filter(conversation=conversation, status=Compaction.Status.DONE)
    return [
        schemas.compaction_shape(row)
        | {"branch": str(row.branch_id), "previous": str(row.previous_id) if row.previous_id else None}
        for row in rows.order_by("created_at", "first_position", "pk")
    ]


PICKED_UP_AFTER = timedelta(seconds=5)
QUIET_AFTER = timedelta(minutes=10)


def waiting_compactions(now: datetime) -> list[UUID]:
    """Return the compactions that have been pending longer than a wake-up takes, or are held by a dead worker."""
    late = Q(is_overdue(now, PICKED_UP_AFTER), status=Compaction.Status.PENDING)
    rows = Compaction.objects.filter(late | Compaction.is_abandoned(now)).order_by("created_at", "pk")
    return list(rows.values_list("pk", flat=True)[:20])


def quiet_conversations(now: datetime) -> list[UUID]:
    """Return the conversations without recent activity in which something waits to be summarised."""
    rows = Conversation.objects.filter(summary_waits=True, last_activity_at__lt=now - QUIET_AFTER)
    return list(rows.order_by("last_activity_at", "pk").values_list("pk", flat=True)[:20])


def compaction_to_keep(compaction_id: UUID) -> Compaction | None:
    """Return a finished compaction; None if it is undone, or its conversation's file already contains its messages."""
    rows = Compaction.objects.select_related("branch", "conversation").filter(
        conversation__user__isnull=False, status=Compaction.Status.DONE
    )
    return rows.filter(pk=compaction_id, context_kept_at=None).first()


def compactions_to_keep(finished_before: datetime) -> list[UUID]:
    rows = Compaction.objects.filter(
        conversation__user__isnull=False, status=Compaction.Status.DONE, context_kept_at=None
    )
    late = rows.filter(finished_at__lt=finished_before).order_by("finished_at", "pk")
    return list(late.values_list("pk", flat=True)[:20])


def may_be_kept_already(row: Compaction) -> bool:
    """Return whether another compaction, perhaps undone since, covered messages of this one and has kept them."""
    others = Compaction.objects.filter(conversation_id=row.conversation_id).exclude(pk=row.pk)
    kept = others.exclude(context_kept_at=None).filter(first_position__lte=row.last_position)
    return kept.filter(last_position__gte=row.first_position).exists()


def turns_since_compaction(conversation: Conversation, upto: UUID | None = None) -> int | None:
    """Return how many answers were begun since the last finished compaction, up to the run `upto`; None if there is
    none.

    A compaction that covered only a part of a backlog does not count.
    """
    finished = conversation.compactions.filter(status=Compaction.Status.DONE, is_partial=False)
    done = finished.order_by("-finished_at", "-pk").first()
    if done is None or done.finished_at is None:
        return None
    begun = Run.objects.filter(conversation=conversation, created_at__gt=done.finished_at)
    if upto is not None:
        begun = begun.filter(created_at__lte=Run.objects.filter(pk=upto).values("created_at"))
    return begun.count()


def was_undone(branch: Branch, previous: Compaction | None, last_position: int, *, is_needed: bool) -> bool:
    """Return whether the user undid a summary built on `previous`, so that it must not be made again.

    With `is_needed`, because the context is full, a summary that covers more than the undone one is allowed.
    """
    undone = visible_compactions(branch).filter(status=Compaction.Status.UNDONE, previous=previous)
    return (undone.filter(last_position__gte=last_position) if is_needed else undone).exists()


def active_compaction(conversation_id: UUID) -> Compaction | None:
    return Compaction.objects.filter(conversation_id=conversation_id, status__in=Compaction.ACTIVE).first()


MAX_SPAN = 2_000
"""The most messages one compaction covers. A longer backlog becomes several checkpoints, each stored when done."""
PAGE = 500


@dataclass(frozen=True, slots=True)
class Span:
    """The messages a compaction adds to its predecessor. `is_whole` is False if MAX_SPAN ended it early.

    `branch` is the branch of its last message, so that branches that fork later share the span.
    """

    branch: Branch
    last_position: int
    message_count: int
    tokens: int
    is_whole: bool


def measure_span(branch: Branch, first_position: int, last_position: int) -> Span:
    """Return the span from `first_position` on. If it is too long, it ends before a user message."""
    end = _early_end(branch, first_position, last_position)
    is_whole = end is None
    last = last_position if end is None else end
    totals = messages_between(branch, first_position, last).aggregate(
        count=Count("pk"), tokens=Sum("token_estimate")
    )
    return Span(_branch_at(branch, last), last, totals["count"], totals["tokens"] or 0, is_whole)


def _branch_at(branch: Branch, position: int) -> Branch:
    """Return the branch that owns the last message up to `position`."""
    rows = visible_messages(branch).filter(position__lte=position).order_by("-position")
    owner = rows.values_list("branch_id", flat=True).first()
    return branch if owner in (None, branch.pk) else Branch.objects.get(pk=owner)


def _early_end(branch: Branch, first_position: int, last_position: int) -> int | None:
    rows = messages_between(branch, first_position, last_position).order_by("position")
    beyond = rows[MAX_SPAN : MAX_SPAN + 1].values_list("position", flat=True).first()
    if beyond is None:
        return None
    turn = (
        rows.filter(position__gte=beyond, role=Message.Role.USER).values_list("position", flat=True).first()
    )
    # No later question: the rest is one turn, which must not be divided.
    return turn - 1 if turn is not None else None


def span_messages(branch: Branch, first_position: int, last_position: int) -> Iterator[MessageValue]:
    """Yield the messages of a span in order, without empty ones, read a page at a time."""
    rows = messages_between(branch, first_position, last_position)
    columns = rows.order_by("position").values_list(*MESSAGE_COLUMNS).iterator(chunk_size=PAGE)
    while page := list(itertools.islice(columns, PAGE)):
        yield from (message for message in messages_from_columns(page) if message.parts)


def span_ends(branch: Branch, first_position: int, last_position: int) -> tuple[UUID, UUID]:
    """Return the ids of the first and last message. Raise ValueError if there are none."""
    rows = messages_between(branch, first_position, last_position).order_by("position")
    ids = rows.values_list("pk", flat=True)
    first, last = ids.first(), ids.last()
    if first is None or last is None:
        raise ValueError(f"There are no messages from {first_position} to {last_position}.")
    return first, last
