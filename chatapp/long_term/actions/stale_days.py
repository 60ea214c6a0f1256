"""Marks days whose files are stale, and entries that the files contain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from uuid import UUID

from django.db import transaction

from agents.events import MemoryProposed, MemoryWritten
from chatapp.conversations.models import Conversation
from chatapp.long_term.models import ENTRY_PREVIEW_CHARS, MemoryEntry, StaleDay
from chatapp.long_term.selectors.entries import kept_entries
from chatapp.realtime import event_log

MARKED_AT_ONCE = 500


def mark_days_stale(user_id: UUID, days: Iterable[date]) -> None:
    """Mark days whose files must be rewritten. Call it in the transaction that changes or removes their entries."""
    StaleDay.objects.bulk_create([StaleDay(user_id=user_id, day=day) for day in sorted(set(days))])


def clear_stale_marks(mark_ids: Iterable[int]) -> None:
    StaleDay.objects.filter(pk__in=list(mark_ids)).delete()


def mark_entries_written(entry_ids: Iterable[UUID], *, at: datetime) -> None:
    """Record that the file contains these entries, and append an event to their conversations."""
    ids = list(entry_ids)
    told = kept_entries().filter(pk__in=ids, written_at=None).exclude(conversation=None)
    of_conversations = set(told.values_list("pk", flat=True)) if ids else set()
    others = [pk for pk in ids if pk not in of_conversations]
    for first in range(0, len(others), MARKED_AT_ONCE):
        _mark_untold_written(others[first : first + MARKED_AT_ONCE], at)
    for pk in ids:
        if pk in of_conversations:
            _mark_entry_written(pk, at)


@transaction.atomic
def _mark_untold_written(entry_ids: Sequence[UUID], at: datetime) -> None:
    """Mark entries without a conversation, which need no event."""
    rows = kept_entries().filter(pk__in=entry_ids, written_at=None, conversation=None)
    # Lock by key first, because an UPDATE of many rows locks them in the order in which it finds them.
    held = list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))
    MemoryEntry.objects.filter(pk__in=held).update(written_at=at)


@transaction.atomic
def _mark_entry_written(entry_id: UUID, at: datetime) -> None:
    entry = kept_entries().filter(pk=entry_id, written_at=None).first()
    if entry is None:
        return
    # Lock it before the update, so that the lock order is the same everywhere: conversation, then its rows.
    home = entry.conversation_id
    conversation = Conversation.objects.select_for_update().filter(pk=home).first() if home else None
    # If two processes wrote the file, only one appends the event.
    claimed = MemoryEntry.objects.filter(pk=entry_id, written_at=None).update(written_at=at)
    if claimed and conversation:
        event_log.append(conversation, memory_event(MemoryWritten, entry, conversation, at))


def memory_event(
    event: type[MemoryWritten] | type[MemoryProposed],
    entry: MemoryEntry,
    conversation: Conversation,
    at: datetime,
) -> MemoryWritten | MemoryProposed:
    return event(
        conversation_id=str(conversation.pk),
        at=at,
        entry_id=str(entry.pk),
        day=entry.day.isoformat(),
        preview=entry.text[:ENTRY_PREVIEW_CHARS],
    )
