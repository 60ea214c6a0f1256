"""Compactions that wait for a worker."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from chatapp.models import Branch, Compaction, Conversation, Run
from chatapp.selectors.branches import visible_compactions

PICKED_UP_AFTER = timedelta(seconds=5)
QUIET_AFTER = timedelta(minutes=10)


def waiting_compactions(now: datetime) -> list[UUID]:
    """Pending for longer than a wake-up takes, or held by a worker that is gone."""
    late = Q(status=Compaction.Status.PENDING, created_at__lt=now - PICKED_UP_AFTER)
    late |= Q(status=Compaction.Status.RUNNING, lease_expires_at__lt=now)
    return list(
        Compaction.objects.filter(late).order_by("created_at", "pk").values_list("pk", flat=True)[:20]
    )


def quiet_conversations(now: datetime) -> list[UUID]:
    """In which nothing was said for a while, and something waits to be summarised."""
    rows = Conversation.objects.filter(summary_waits=True, last_activity_at__lt=now - QUIET_AFTER)
    return list(rows.order_by("last_activity_at", "pk").values_list("pk", flat=True)[:20])


def compaction_to_keep(compaction_id: UUID) -> Compaction | None:
    """None where its conversation's file has it, or nothing left by it."""
    rows = Compaction.objects.select_related("branch").filter(
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
    """Whether another compaction, since undone perhaps, covered messages of this one and has kept them."""
    others = Compaction.objects.filter(conversation_id=row.conversation_id).exclude(pk=row.pk)
    kept = others.exclude(context_kept_at=None).filter(first_position__lte=row.last_position)
    return kept.filter(last_position__gte=row.first_position).exists()


def turns_since_compaction(conversation: Conversation, upto: UUID | None = None) -> int | None:
    """Answers begun since the last finished compaction, `upto` that of this run; None when there was none. A part of a
    backlog is none."""
    finished = conversation.compactions.filter(status=Compaction.Status.DONE, is_partial=False)
    done = finished.order_by("-finished_at", "-pk").first()
    if done is None or done.finished_at is None:
        return None
    begun = Run.objects.filter(conversation=conversation, created_at__gt=done.finished_at)
    if upto is not None:
        begun = begun.filter(created_at__lte=Run.objects.filter(pk=upto).values("created_at"))
    return begun.count()


def was_undone(branch: Branch, previous: Compaction | None, last_position: int, *, is_needed: bool) -> bool:
    """Whether the user took back a summary that grew from `previous`: none comes back by itself in its place.

    `is_needed`: the context is full, and more has left it than that summary covered.
    """
    undone = visible_compactions(branch).filter(status=Compaction.Status.UNDONE, previous=previous)
    return (undone.filter(last_position__gte=last_position) if is_needed else undone).exists()


def active_compaction(conversation_id: UUID) -> Compaction | None:
    return Compaction.objects.filter(conversation_id=conversation_id, status__in=Compaction.ACTIVE).first()
