"""What is learned becomes entries, once each; and the marks that say which daily files are behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from uuid import UUID

from django.db import transaction

from agents.events import MemoryProposed, MemoryWritten
from chatapp import event_log
from chatapp.actions.search import index_entry
from chatapp.models import Compaction, Conversation, EntryRevision, EntrySource, MemoryEntry
from chatapp.models.search import StaleDay
from chatapp.selectors.learned import entries_of_the_same
from chatapp.selectors.memory import kept_entries, user_zone
from chatapp.selectors.pauses import is_paused
from chatapp.selectors.scopes import open_scope

PREVIEW_CHARS = 200


@transaction.atomic
def record_entry(
    *, compaction: Compaction, text: str, first_message_id: UUID, last_message_id: UUID, at: datetime
) -> MemoryEntry | None:
    """The one entry of this span, made now or earlier; None for a temporary conversation, and while memory is paused.

    What its user wrote in it stands, however often the span is summarised again.
    """
    conversation = compaction.conversation
    if not conversation.uses_memory or is_paused(conversation):
        return None
    span = {"first_message_id": first_message_id, "last_message_id": last_message_id}
    entry = _entry_of_span(compaction, span)
    if entry is not None:
        return _extract_again(entry, compaction, text)
    scope_id = open_scope(conversation)
    entry = MemoryEntry.objects.create(
        compaction=compaction,
        user=conversation.user,
        day=at.astimezone(user_zone(conversation.user.time_zone)).date(),
        conversation=conversation,
        scope_id=scope_id,
        shared_in=scope_id,
        **span,
        text=text,
        state=MemoryEntry.State.PROPOSED if conversation.user.reviews_memory else MemoryEntry.State.KEPT,
        created_at=at,
    )
    if entry.state == MemoryEntry.State.KEPT:
        index_entry(entry)
    else:
        event_log.append(conversation, _told(MemoryProposed, entry, conversation, at))
    return entry


def _entry_of_span(compaction: Compaction, span: Mapping[str, UUID]) -> MemoryEntry | None:
    """By the compaction where it is repeated, by the span where it was undone and done again."""
    rows = MemoryEntry.objects.select_for_update().filter(conversation_id=compaction.conversation_id)
    undone = rows.filter(**span, compaction__status=Compaction.Status.UNDONE)
    return rows.filter(compaction=compaction).first() or undone.first()


def _extract_again(entry: MemoryEntry, compaction: Compaction, text: str) -> MemoryEntry:
    is_repeated = entry.compaction_id == compaction.pk
    if not is_repeated:
        entry.compaction = compaction
        entry.save(update_fields=["compaction"])
    if not is_repeated and entry.author == MemoryEntry.Author.EXTRACTION:
        rewrite_entry(entry, text, MemoryEntry.Author.EXTRACTION)
    return entry


def index_standing(compaction: Compaction) -> None:
    """Called in the transaction that finishes, undoes or redoes it: what was learned of these messages is found as long
    as a summary stands for them. The entries are locked before the index, as everywhere."""
    of_same = kept_entries().filter(pk__in=entries_of_the_same(compaction).values("pk"))
    for entry in list(of_same.select_for_update().order_by("pk")):
        index_entry(entry)


def rewrite_entry(entry: MemoryEntry, text: str, author: MemoryEntry.Author) -> None:
    """Called in a transaction that holds the row; what it said becomes its history."""
    if text == entry.text:
        return
    EntryRevision.objects.create(
        entry=entry,
        number=entry.revision,
        text=entry.text,
        author=entry.author,
        written_at=entry.updated_at,
    )
    entry.text, entry.author = text, author
    entry.revision += 1
    entry.consolidated_at = None
    entry.save(update_fields=["text", "author", "revision", "consolidated_at", "updated_at"])
    if entry.state == MemoryEntry.State.KEPT:
        index_entry(entry)
        mark_days_stale(entry.user_id, [entry.day])


def note_sources(
    *,
    entry_ids: Iterable[str],
    conversation: Conversation,
    first_message_id: UUID,
    last_message_id: UUID,
    at: datetime,
) -> None:
    """Called in the transaction that records what was learned: this span says it, too. The entries are locked here, or
    the foreign keys would do it at the commit, behind the index (`forget_reach`)."""
    known = MemoryEntry.objects.filter(pk__in=list(entry_ids), user=conversation.user_id)
    present = list(known.select_for_update().order_by("pk"))
    EntrySource.objects.bulk_create(
        [
            EntrySource(
                entry=entry,
                conversation=conversation,
                first_message_id=first_message_id,
                last_message_id=last_message_id,
                created_at=at,
            )
            for entry in present
        ],
        ignore_conflicts=True,
    )


def mark_entries_written(entry_ids: Iterable[UUID], *, at: datetime) -> int:
    """Notes that the file holds these entries, and tells their conversations so; how many were news."""
    return sum(_mark_entry_written(entry_id, at) for entry_id in entry_ids)


@transaction.atomic
def _mark_entry_written(entry_id: UUID, at: datetime) -> bool:
    entry = kept_entries().filter(pk=entry_id, written_at=None).first()
    if entry is None:
        return False
    # Locked before the claim, so that the order of locks is the same everywhere: conversation, then its rows.
    conversation = _lock_conversation_of(entry)
    claimed = MemoryEntry.objects.filter(pk=entry_id, written_at=None).update(written_at=at)
    if claimed and conversation:
        event_log.append(conversation, _told(MemoryWritten, entry, conversation, at))
    return bool(claimed)


def _lock_conversation_of(entry: MemoryEntry) -> Conversation | None:
    if entry.conversation_id is None:
        return None
    return Conversation.objects.select_for_update().filter(pk=entry.conversation_id).first()


def _told(
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
        preview=entry.text[:PREVIEW_CHARS],
    )


def mark_days_stale(user_id: UUID, days: Iterable[date]) -> None:
    """Called in the transaction that changes or removes entries: their files must be written anew."""
    StaleDay.objects.bulk_create([StaleDay(user_id=user_id, day=day) for day in sorted(set(days))])


def clear_stale_marks(mark_ids: Iterable[int]) -> None:
    StaleDay.objects.filter(pk__in=list(mark_ids)).delete()
