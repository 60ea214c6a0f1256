"""Writes compactions: each is stored before its work begins, one at a time per conversation, and completed once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Q, QuerySet, Sum

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.compaction.selectors import accessible_compaction
from chatapp.compaction.values import CompactionLease, FinishedSummary, compact_event
from chatapp.conversations.access import lock_conversation
from chatapp.conversations.branches import latest_checkpoint, usable_checkpoint, visible_messages
from chatapp.conversations.models import Branch, Conversation
from chatapp.conversations.selectors.messages import QUEUED
from chatapp.long_term.actions.entries import (
    drop_entries,
    lock_entries_of,
    note_sources,
    record_entry,
    reindex_entries_of,
    rewrite_entry,
)
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.forgetting_counts import check_forgetting_count, lock_forgetting_counts
from chatapp.operations.errors import Conflict, LeaseLost
from chatapp.operations.workers import jobs
from chatapp.providers.selectors import totals_of
from chatapp.providers.usage import CallUsage
from chatapp.realtime import event_log
from chatapp.recall.actions.claims import store_superseded_pairs
from chatapp.recall.analysis import vocabulary
from chatapp.runs.models import Run
from memory.long_term.new_sentences import correct_text
from memory.tokens import estimate_text

TAKEN = "Another summary has replaced this one."
BEING_WRITTEN = "A summary of this conversation is being written already."


def queue_compaction(
    *, planned: Compaction, conversation_id: UUID, seen_from: Branch, now: datetime, holder: str = ""
) -> Compaction | None:
    """Store a compaction planned for the branch `seen_from`, and return it; None if one is active already, the span was
    summarised meanwhile, or the conversation is gone.

    With a `holder` it is claimed at once, for the caller to do the work. Else a worker is woken.
    """
    row = planned
    try:
        with transaction.atomic():
            conversation = Conversation.objects.select_for_update().get(pk=conversation_id)
            if _is_superseded(conversation, row, seen_from):
                return None
            row.conversation = conversation
            if holder:
                # Claim it in the insert, so that no worker claims it first.
                row.status, row.holder, row.fence = Compaction.Status.RUNNING, holder, 1
            row.lease_expires_at, row.created_at = now + Compaction.lease(), now
            row.save(force_insert=True)
            record_created_id(row.pk)
            event_log.append(conversation, compact_event(row, "started", now))
            # If the broker loses the id, the sweep finds the stored row.
            if not holder:
                jobs.wake_worker("chatapp.compaction.tasks.compact", str(row.pk))
            return row
    except (IntegrityError, Conversation.DoesNotExist):
        return None


def _is_superseded(conversation: Conversation, planned: Compaction, seen_from: Branch) -> bool:
    """Return whether the plan builds on an outdated checkpoint, or a compaction is active."""
    latest = usable_checkpoint(
        seen_from, before_position=conversation.next_position, budget_tokens=planned.budget_tokens
    )
    is_active = conversation.compactions.filter(status__in=Compaction.ACTIVE).exists()
    return is_active or latest != planned.previous


def note_waiting(*, conversation_id: UUID, waits: bool) -> None:
    """Store whether messages left the view that are too few to be summarised while more may come."""
    # Write the row only if the value changes.
    rows = Conversation.objects.filter(pk=conversation_id, summary_waits=not waits)
    rows.update(summary_waits=waits)


def claim_compaction(*, compaction_id: UUID, holder: str, now: datetime) -> CompactionLease | None:
    """Claim a pending compaction, or one whose holder's lease ran out. Return its lease; None if it is not free."""
    with transaction.atomic():
        free = Q(status=Compaction.Status.PENDING) | Compaction.is_abandoned(now)
        claimed = Compaction.objects.filter(free, pk=compaction_id).update(
            status=Compaction.Status.RUNNING,
            holder=holder,
            fence=F("fence") + 1,
            lease_expires_at=now + Compaction.lease(),
        )
        if not claimed:
            return None
        row = Compaction.objects.get(pk=compaction_id)
        return CompactionLease(row.pk, row.fence)


def _leased(lease: CompactionLease) -> Any:
    return Compaction.objects.filter(
        pk=lease.compaction_id, fence=lease.fence, status=Compaction.Status.RUNNING
    )


def renew_compaction(*, lease: CompactionLease, now: datetime) -> None:
    """Renew the lease. Raise LeaseLost."""
    if not _leased(lease).update(lease_expires_at=now + Compaction.lease()):
        raise LeaseLost("Another worker took this compaction over.")


def release_compaction(*, lease: CompactionLease, now: datetime) -> None:
    """Release an unfinished compaction, and wake a worker for it."""
    with transaction.atomic():
        if _leased(lease).update(lease_expires_at=now):
            jobs.wake_worker("chatapp.compaction.tasks.compact", str(lease.compaction_id))


def release_all_compactions(*, now: datetime) -> None:
    """Release all running compactions. For a process that knows it is alone: holders and broker messages are gone."""
    with transaction.atomic():
        Compaction.objects.filter(status=Compaction.Status.RUNNING).update(lease_expires_at=now)
        active = Compaction.objects.filter(status__in=Compaction.ACTIVE)
        for compaction_id in active.order_by("created_at", "pk").values_list("pk", flat=True):
            jobs.wake_worker("chatapp.compaction.tasks.compact", str(compaction_id))


def _lock_leased(lease: CompactionLease) -> tuple[Conversation, Compaction]:
    row = Compaction.objects.filter(pk=lease.compaction_id).first()
    if row is None:
        raise LeaseLost("The conversation was deleted.")
    conversation = Conversation.objects.select_for_update().filter(pk=row.conversation_id).first()
    if conversation is None:  # it has no user, because its rows are being deleted
        raise LeaseLost("The conversation was deleted.")
    held = _leased(lease).first()
    if held is None:
        raise LeaseLost("Another worker took this compaction over.")
    held.conversation = conversation  # to count events on the locked row
    return conversation, held


def complete_compaction(*, lease: CompactionLease, result: FinishedSummary, now: datetime) -> Compaction:
    """Store checkpoint and memory entry together, or a failure if another summary took its place. Raise LeaseLost."""
    with transaction.atomic():
        if result.superseded:
            # Superseded statements may be in other conversations, whose forgettings must come before or after this.
            lock_forgetting_counts(_forgetting_keys_of(lease))
        conversation, row = _lock_leased(lease)
        if _is_taken(row):
            _store_failure(conversation, row, TAKEN, result.calls, now)
            return row
        row.status = Compaction.Status.DONE
        row.summary = result.summary
        row.summary_tokens = result.summary_tokens
        row.tokens_after = result.tokens_after
        row.fallback_reason = result.fallback_reason
        row.reminder = result.reminder
        row.usage = _usage_of(result.calls)
        row.finished_at = now
        row.lease_expires_at = None
        row.save()
        lock_entries_of(row, result.repeated_entries)
        if not conversation.temporary:
            note_sources(
                entry_ids=result.repeated_entries,
                conversation=conversation,
                first_message_id=result.first_message_id,
                last_message_id=result.last_message_id,
                at=now,
            )
        # After the status, here and below, because it decides whether the entry is in the index.
        reindex_entries_of(row)
        if conversation.uses_memory and result.entry_text:
            record_entry(
                compaction=row,
                text=result.entry_text,
                first_message_id=result.first_message_id,
                last_message_id=result.last_message_id,
                at=now,
            )
        if conversation.uses_memory:
            store_superseded_pairs(conversation.owner_id, result.superseded)
        event_log.append(conversation, compact_event(row, "done", now))
        jobs.wake_worker("chatapp.compaction.tasks.keep_left_context", str(row.pk))
        return row


def _forgetting_keys_of(lease: CompactionLease) -> list[UUID]:
    row = Compaction.objects.select_related("conversation").filter(pk=lease.compaction_id).first()
    if row is None or row.conversation.user_id is None:
        raise LeaseLost("The conversation was deleted.")
    return row.conversation.forgetting_keys


@transaction.atomic
def mark_context_kept(*, row: Compaction, forgotten_count: int, now: datetime) -> None:
    """Record that the conversation's file contains the messages this compaction took out of the context. Raise
    ReadForgotten if something was forgotten since `forgotten_count` was read."""
    check_forgetting_count(row.conversation.forgetting_keys, forgotten_count)
    Compaction.objects.filter(pk=row.pk).update(context_kept_at=now)


def note_context_discarded(conversation_id: UUID) -> None:
    """Have the sweep append again the messages that left the context by any compaction."""
    Compaction.objects.filter(conversation_id=conversation_id).update(context_kept_at=None)


def fail_compaction(*, lease: CompactionLease, error: str, calls: Sequence[CallUsage], now: datetime) -> None:
    """Store that a compaction failed, with the usage of its calls. Raise LeaseLost."""
    with transaction.atomic():
        conversation, row = _lock_leased(lease)
        _store_failure(conversation, row, error, calls, now)


def _is_taken(row: Compaction) -> bool:
    """Return whether the same span has a finished summary, or a checkpoint over it was made since this one was queued,
    because the user cleared the context."""
    in_force = Compaction.objects.filter(branch=row.branch_id, status=Compaction.Status.DONE)
    same = Q(first_position=row.first_position, last_position=row.last_position)
    # By time, not by `previous`: a checkpoint for a larger window covers the span of an older one again, and in another
    # branch an older one continues after this span.
    since = Q(created_at__gte=row.created_at, last_position__gte=row.first_position)
    return in_force.filter(same | since).exists()


def _store_failure(
    conversation: Conversation, row: Compaction, error: str, calls: Sequence[CallUsage], now: datetime
) -> None:
    row.status = Compaction.Status.FAILED
    row.error = error
    row.usage = _usage_of(calls)
    row.finished_at = now
    row.lease_expires_at = None
    row.save()
    event_log.append(conversation, compact_event(row, "failed", now))


def _usage_of(calls: Sequence[CallUsage]) -> dict[str, Any]:
    names = dict.fromkeys(call.model.name for call in calls if call.model is not None)
    totals = totals_of(calls).model_dump(exclude={"compaction_tokens"})
    return {"model": ", ".join(names) or None, **totals}


CLEARED = "The user started a new context here. What was said before is kept, but is not part of it."


def edit_summary(
    *, user: User, conversation_id: str, compaction_id: str, summary: str, tokens: int, now: datetime
) -> Compaction:
    """Replace a summary by the user's own words, and correct its memory entry to match.

    Later summaries built on the old words stay as they are. Raise Conflict while one is being written.
    """
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        row = accessible_compaction(user, conversation_id, compaction_id)
        if row.status != Compaction.Status.DONE:
            raise Conflict("Only a finished summary can be edited.")
        # It may have read the old words, and would replace the new ones without having seen them.
        if _later(row).filter(status__in=Compaction.ACTIVE).exists():
            raise Conflict(
                "A later summary is being written on top of this one; edit that one when it is done.",
                code="not_latest",
            )
        _correct_entry(row, summary)
        row.summary = summary
        row.summary_tokens = tokens
        row.reminder = ""  # it may repeat what the user removed from the summary
        row.fallback_reason = ""  # the text is the user's now, and no extract
        # A pending rewrite would replace the user's words by a model's.
        row.rewrite_since = row.rewrite_after = None
        row.save(
            update_fields=[
                "summary",
                "summary_tokens",
                "reminder",
                "fallback_reason",
                "rewrite_since",
                "rewrite_after",
            ]
        )
        event_log.append(conversation, compact_event(row, "done", now))
        return row


def _correct_entry(row: Compaction, summary: str) -> None:
    """Remove from the summary's memory entry what the edit removed, and add what it added.

    The author stays, so that an undo hides the entry and a redo shows it again.
    """
    entry = MemoryEntry.objects.select_for_update().filter(compaction=row).first()
    if entry is None:
        return
    text = correct_text(entry.text, row.summary, summary, vocabulary)
    if text:
        rewrite_entry(entry, text, MemoryEntry.Author(entry.author))
    else:
        drop_entries([entry])


def _later(row: Compaction) -> QuerySet[Compaction]:
    """Return the compactions that build on this one."""
    return Compaction.objects.filter(conversation=row.conversation_id, previous=row)


def undo_compaction(*, user: User, conversation_id: str, compaction_id: str, now: datetime) -> Compaction:
    """Bring the messages back into the context and return the row. Only the latest compaction can be undone: later ones
    build on it."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        row = accessible_compaction(user, conversation_id, compaction_id)
        if row.status != Compaction.Status.DONE:
            raise Conflict("Only a finished summary can be undone.")
        later = _later(row)
        if later.filter(status=Compaction.Status.DONE).exists():
            raise Conflict("A later summary builds on this one; undo that one first.", code="not_latest")
        # It begins with the words of this summary, which would live on in it.
        if later.filter(status__in=Compaction.ACTIVE).exists():
            raise Conflict(
                "A later summary is being written on top of this one; undo that one first when it is done.",
                code="not_latest",
            )
        return _set_status(conversation, row, Compaction.Status.UNDONE, now)


def redo_compaction(*, user: User, conversation_id: str, compaction_id: str, now: datetime) -> Compaction:
    """Restore an undone summary and return its row. Raise Conflict if another has taken its place or is being
    written."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        row = accessible_compaction(user, conversation_id, compaction_id)
        if row.status != Compaction.Status.UNDONE:
            raise Conflict("Only a summary that was undone can be redone.")
        # A summary being written begins at the checkpoint before this one, and would cover the same messages.
        if conversation.compactions.filter(status__in=Compaction.ACTIVE).exists():
            raise Conflict(BEING_WRITTEN, code="compaction_active")
        latest = latest_checkpoint(row.branch, conversation.next_position)
        if latest != row.previous:
            raise Conflict(TAKEN, code="not_latest")
        return _set_status(conversation, row, Compaction.Status.DONE, now)


def _set_status(
    conversation: Conversation, row: Compaction, status: Compaction.Status, now: datetime
) -> Compaction:
    row.status = status
    row.save(update_fields=["status"])
    reindex_entries_of(row)
    event_log.append(conversation, compact_event(row, status, now))
    return row


def clear_context(*, user: User, conversation_id: str, budget_tokens: int, now: datetime) -> Compaction:
    """Store and return a checkpoint over all messages that does not summarise them. Nothing is deleted, and it can be
    undone.

    Raise Conflict if there is nothing to clear, or an answer is being written.
    """
    tokens = estimate_text(CLEARED)
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        assert conversation.branch is not None
        if Run.active().filter(conversation=conversation).exists():
            raise Conflict("An answer is still being written here. Stop it or wait for its end.")
        previous = latest_checkpoint(conversation.branch, conversation.next_position)
        first = previous.last_position + 1 if previous else 0
        # Messages queued behind a stopped answer stay: they move behind the answer that continues it.
        shown = visible_messages(conversation.branch, first - 1)
        waiting = shown.filter(QUEUED).order_by("position").values_list("position", flat=True).first()
        left = shown.filter(
            position__lt=conversation.next_position if waiting is None else waiting
        ).aggregate(count=Count("pk"), last=Max("position"), tokens=Sum("token_estimate"))
        if not left["count"]:
            raise Conflict("There is nothing to clear.", code="nothing_to_compact")
        row = Compaction.objects.create(
            conversation=conversation,
            branch=conversation.branch,
            previous=previous,
            first_position=first,
            last_position=left["last"],
            message_count=left["count"],
            kept_count=0,
            status=Compaction.Status.DONE,
            strategy=Compaction.CLEARED,
            summary=CLEARED,
            summary_tokens=tokens,
            span_tokens=left["tokens"],
            budget_tokens=budget_tokens,
            tokens_before=left["tokens"],
            tokens_after=tokens,
            created_at=now,
            finished_at=now,
        )
        record_created_id(row.pk)
        reindex_entries_of(row)
        event_log.append(conversation, compact_event(row, "done", now))
        jobs.wake_worker("chatapp.compaction.tasks.keep_left_context", str(row.pk))
        return row
