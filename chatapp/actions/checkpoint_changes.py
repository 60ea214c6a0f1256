"""What users do to finished checkpoints: other words, undo and redo, a new beginning. No message is ever deleted."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Count, Max, Sum

from chatapp import event_log, jobs
from chatapp.actions.compactions import compact_event
from chatapp.actions.memory import index_standing, rewrite_entry
from chatapp.errors import Conflict
from chatapp.models import Compaction, Conversation, MemoryEntry, Run, User
from chatapp.selectors.access import accessible_compaction, lock_conversation
from chatapp.selectors.branches import latest_checkpoint, visible_messages
from memory.hygiene import add_sentences

CLEARED = "The user started a new context here. What was said before is kept, but is not part of it."


def edit_summary(
    *, user: User, conversation_id: str, compaction_id: str, summary: str, tokens: int, now: datetime
) -> Compaction:
    """The user's own words from now on; what was built on the old ones keeps what it said. What is new in them is
    remembered, and found."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        row = accessible_compaction(user, conversation_id, compaction_id)
        if row.status != Compaction.Status.DONE:
            raise Conflict("Only a finished summary can be edited.")
        _add_to_entry(row, summary)
        row.summary = summary
        row.summary_tokens = tokens
        row.reminder = ""  # it says what the summary may just have been made to forget
        row.save(update_fields=["summary", "summary_tokens", "reminder"])
        event_log.append(conversation, compact_event(row, "done", now))
        return row


def _add_to_entry(row: Compaction, summary: str) -> None:
    """As before by its author: with the summary it goes and comes again."""
    entry = MemoryEntry.objects.select_for_update().filter(compaction=row).first()
    if entry is not None:
        rewrite_entry(
            entry, add_sentences(entry.text, row.summary, summary), MemoryEntry.Author(entry.author)
        )


def undo_compaction(*, user: User, conversation_id: str, compaction_id: str, now: datetime) -> Compaction:
    """The messages are in context again, as before. Only the latest can be undone: others stand on the earlier ones."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        row = accessible_compaction(user, conversation_id, compaction_id)
        if row.status != Compaction.Status.DONE:
            raise Conflict("Only a finished summary can be undone.")
        if conversation.compactions.filter(previous=row, status=Compaction.Status.DONE).exists():
            raise Conflict("A later summary stands on this one; undo that one first.", code="not_latest")
        return _set_status(conversation, row, Compaction.Status.UNDONE, now)


def redo_compaction(*, user: User, conversation_id: str, compaction_id: str, now: datetime) -> Compaction:
    """An undone summary stands again, unless another took its place meanwhile."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        row = accessible_compaction(user, conversation_id, compaction_id)
        if row.status != Compaction.Status.UNDONE:
            raise Conflict("Only a summary that was undone can be redone.")
        latest = latest_checkpoint(row.branch, conversation.next_position)
        if latest != row.previous:
            raise Conflict("Another summary took its place meanwhile.", code="not_latest")
        return _set_status(conversation, row, Compaction.Status.DONE, now)


def _set_status(
    conversation: Conversation, row: Compaction, status: Compaction.Status, now: datetime
) -> Compaction:
    row.status = status
    row.save(update_fields=["status"])
    index_standing(row)
    event_log.append(conversation, compact_event(row, status, now))
    return row


def clear_context(
    *, user: User, conversation_id: str, budget_tokens: int, tokens: int, now: datetime
) -> Compaction:
    """A checkpoint over everything that says nothing of it. Nothing is deleted, and it can be undone.

    `tokens` is the size of CLEARED. Raises Conflict where there is nothing to clear, or an answer is being written.
    """
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        assert conversation.branch is not None
        if conversation.runs.filter(status__in=Run.ACTIVE).exists():
            raise Conflict("An answer is still being written here. Stop it or wait for its end.")
        previous = latest_checkpoint(conversation.branch, conversation.next_position)
        first = previous.last_position + 1 if previous else 0
        left = visible_messages(conversation.branch, first - 1).aggregate(
            count=Count("pk"), last=Max("position"), tokens=Sum("token_estimate")
        )
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
        index_standing(row)
        event_log.append(conversation, compact_event(row, "done", now))
        jobs.wake_worker("keep_left_context", str(row.pk))
        return row
