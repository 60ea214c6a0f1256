"""Writes memory entries, and the marks of daily files that are behind them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from uuid import UUID

from django.db import transaction

from agents.events import MemoryProposed, MemoryWritten
from chatapp.accounts.idempotency_keys import record_made
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Conversation
from chatapp.long_term.access import lock_entry, lock_shared_entry
from chatapp.long_term.actions.tombstones import raise_tombstones
from chatapp.long_term.models import ENTRY_PREVIEW_CHARS, EntryRevision, EntrySource, MemoryEntry, StaleDay
from chatapp.long_term.selectors.entries import (
    day_entries,
    day_version,
    entries_of_the_same,
    kept_entries,
    lock_day,
    revisions_of_day,
    user_zone,
)
from chatapp.long_term.selectors.pauses import is_paused
from chatapp.long_term.selectors.scopes import open_scope
from chatapp.operations import clock
from chatapp.operations.errors import Conflict, InvalidInput, NotFound
from chatapp.operations.statements import (
    Prepared,
    delete_rows,
    prepare_insert,
    prepare_update,
    run_prepared,
)
from chatapp.realtime import event_log
from chatapp.recall.actions.claims import drop_entry_claims
from chatapp.recall.actions.indexing import ReadEntries, index_entries, index_entry, read_entries
from chatapp.recall.actions.removal import remove_entries

MARKED_AT_ONCE = 500


@transaction.atomic
def record_entry(
    *, compaction: Compaction, text: str, first_message_id: UUID, last_message_id: UUID, at: datetime
) -> MemoryEntry | None:
    """Return the one entry of this span, made now or earlier; None for a temporary conversation, and while memory is
    paused.

    A text that the user wrote stays, however often the span is summarised again.
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
        event_log.append(conversation, _memory_event(MemoryProposed, entry, conversation, at))
    return entry


def _entry_of_span(compaction: Compaction, span: Mapping[str, UUID]) -> MemoryEntry | None:
    """Return the entry of this compaction where its job is repeated, or of its span where an undone compaction is done
    again."""
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
    """Index the entries of these messages as long as a summary covers them. To be called in the transaction that
    finishes, undoes or redoes the compaction. The entries are locked before the index, as everywhere."""
    of_same = kept_entries().filter(pk__in=entries_of_the_same(compaction).values("pk"))
    entries = list(of_same.select_for_update().order_by("pk"))
    if entries:
        index_entries(entries[0].user_id, entries)


def rewrite_entry(entry: MemoryEntry, text: str, author: MemoryEntry.Author) -> None:
    rewrite_entries({entry: text}, author)


@dataclass(frozen=True, slots=True)
class Edits:
    """Statements that store new texts of entries and their history; and the entries that are `kept`, with their texts
    as read for the index."""

    statements: Prepared
    kept: Sequence[MemoryEntry]
    read: ReadEntries


def rewrite_entries(texts: Mapping[MemoryEntry, str], author: MemoryEntry.Author) -> None:
    """Give entries of one user new texts; the former ones become their history. To be called in a transaction that
    holds the rows."""
    _store_edits(_make_edits(texts, author))


def _make_edits(texts: Mapping[MemoryEntry, str], author: MemoryEntry.Author) -> Edits:
    """Give entries of one user new texts; return the edits to store."""
    changed = {entry: text for entry, text in texts.items() if text != entry.text}
    history = [
        EntryRevision(
            entry_id=entry.pk,
            number=entry.revision,
            text=entry.text,
            author=entry.author,
            written_at=entry.updated_at,
        )
        for entry in changed
    ]
    now = clock.now()
    for entry, text in changed.items():
        entry.text, entry.author = text, author.value
        entry.revision += 1
        entry.consolidated_at, entry.updated_at = None, now
    kept = [entry for entry in changed if entry.state == MemoryEntry.State.KEPT]
    columns = ("text", "author", "revision", "consolidated_at", "updated_at")
    statements = [*prepare_insert(history), *prepare_update([*changed], *columns)]
    return Edits(statements, kept, read_entries(kept[0].user_id, kept) if kept else ReadEntries({}, []))


def _store_edits(edits: Edits) -> None:
    run_prepared(edits.statements)
    if kept := edits.kept:
        index_entries(kept[0].user_id, kept, edits.read)
        mark_days_stale(kept[0].user_id, {entry.day for entry in kept})


def note_sources(
    *,
    entry_ids: Iterable[str],
    conversation: Conversation,
    first_message_id: UUID,
    last_message_id: UUID,
    at: datetime,
) -> None:
    """Note that this span says what these entries say. To be called in the transaction that records what was learned.

    The entries are locked here: the foreign keys would lock them at the commit, after the index, against the order of
    `lock_reached`.
    """
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
    """Note that the file holds these entries, and append an event to their conversations. Return how many were not
    written before."""
    ids = list(entry_ids)
    told = kept_entries().filter(pk__in=ids, written_at=None).exclude(conversation=None)
    of_conversations = set(told.values_list("pk", flat=True)) if ids else set()
    others = [pk for pk in ids if pk not in of_conversations]
    written = sum(
        _mark_untold_written(others[first : first + MARKED_AT_ONCE], at)
        for first in range(0, len(others), MARKED_AT_ONCE)
    )
    return written + sum(_mark_entry_written(pk, at) for pk in ids if pk in of_conversations)


@transaction.atomic
def _mark_untold_written(entry_ids: Sequence[UUID], at: datetime) -> int:
    """Mark entries that have no conversation, where no event is due. Return how many."""
    rows = kept_entries().filter(pk__in=entry_ids, written_at=None, conversation=None)
    held = list(rows.select_for_update().order_by("pk").values_list("pk", flat=True))
    return MemoryEntry.objects.filter(pk__in=held).update(written_at=at)


@transaction.atomic
def _mark_entry_written(entry_id: UUID, at: datetime) -> bool:
    entry = kept_entries().filter(pk=entry_id, written_at=None).first()
    if entry is None:
        return False
    # Locked before the claim, so that the order of locks is the same everywhere: conversation, then its rows.
    conversation = _lock_conversation_of(entry)
    claimed = MemoryEntry.objects.filter(pk=entry_id, written_at=None).update(written_at=at)
    if claimed and conversation:
        event_log.append(conversation, _memory_event(MemoryWritten, entry, conversation, at))
    return bool(claimed)


def _lock_conversation_of(entry: MemoryEntry) -> Conversation | None:
    if entry.conversation_id is None:
        return None
    return Conversation.objects.select_for_update().filter(pk=entry.conversation_id).first()


def _memory_event(
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


def mark_days_stale(user_id: UUID, days: Iterable[date]) -> None:
    """Mark days whose files must be written anew. To be called in the transaction that changes or removes their
    entries."""
    StaleDay.objects.bulk_create([StaleDay(user_id=user_id, day=day) for day in sorted(set(days))])


def clear_stale_marks(mark_ids: Iterable[int]) -> None:
    StaleDay.objects.filter(pk__in=list(mark_ids)).delete()


CHANGED = "It was changed meanwhile. Read it again and repeat your change."


@dataclass(frozen=True, slots=True)
class DaySection:
    """One section of a day as it shall be. `entry_id` is None for a new one; `clock` is its local time."""

    entry_id: str | None
    text: str
    clock: time | None = None


@transaction.atomic
def add_entry(
    *, user: User, text: str, now: datetime, day: date | None = None, clock: time | None = None
) -> MemoryEntry:
    """Store an entry in the user's own words, on a day of the user's time zone; today by default."""
    made = _make_entries(user, [DaySection(None, text, clock)], day, now)
    _store_entries(made)
    [entry] = made.entries
    record_made(entry.pk)
    return entry


@dataclass(frozen=True, slots=True)
class NewEntries:
    """New entries of one user, the statements that store them, and their texts as read for the index."""

    entries: Sequence[MemoryEntry]
    statements: Prepared
    read: ReadEntries


def _make_entries(user: User, sections: Sequence[DaySection], day: date | None, now: datetime) -> NewEntries:
    zone = user_zone(user.time_zone)
    here = now.astimezone(zone)
    day = day or here.date()
    entries = [
        MemoryEntry(
            user=user,
            day=day,
            text=section.text,
            author=MemoryEntry.Author.USER.value,
            created_at=now
            if section.clock is None and day == here.date()
            else datetime.combine(day, section.clock or here.time(), zone).astimezone(UTC),
        )
        for section in sections
    ]
    return NewEntries(entries, prepare_insert(entries), read_entries(user.pk, entries))


def _store_entries(new: NewEntries) -> None:
    run_prepared(new.statements)
    if new.entries:
        index_entries(new.entries[0].user_id, new.entries, new.read)


@transaction.atomic
def edit_entry(*, user: User, entry_id: str, text: str, revision: int | None = None) -> MemoryEntry:
    """Replace the text of an entry by the user's. Raise Conflict where `revision` is given and is not the present
    one."""
    entry = lock_entry(user, entry_id)
    if revision is not None:
        check_revision(entry, revision)
    rewrite_entry(entry, text, MemoryEntry.Author.USER)
    return entry


def check_revision(entry: MemoryEntry, read: int) -> None:
    """Raise Conflict where the entry was changed since the revision that was read."""
    if read != entry.revision:
        raise Conflict(CHANGED, details={"revision": entry.revision})


@transaction.atomic
def edit_shared_entry(*, entry_id: UUID, text: str, revision: int) -> MemoryEntry:
    """Replace the text of a shared entry by an operator's; its user sees who wrote it, and can revert it. Raise
    Conflict where `revision`, which the operator has read, is not the present one."""
    entry = lock_shared_entry(entry_id)
    check_revision(entry, revision)
    rewrite_entry(entry, text, MemoryEntry.Author.OPERATOR)
    return entry


@transaction.atomic
def revert_entry(*, user: User, entry_id: str, revision: int) -> MemoryEntry:
    """Restore the text of an earlier revision as a new one, so that this can be reverted, too. Raise NotFound."""
    entry = lock_entry(user, entry_id)
    then = entry.revisions.filter(number=revision).first()
    if then is None and revision != entry.revision:
        raise NotFound("This entry has no such revision.")
    if then is not None:
        rewrite_entry(entry, then.text, MemoryEntry.Author.USER)
    return entry


@transaction.atomic
def approve_entry(*, user: User, entry_id: str) -> MemoryEntry:
    """Keep a proposed entry and index it. Safe to call twice."""
    entry = lock_entry(user, entry_id)
    if entry.state == MemoryEntry.State.PROPOSED:
        entry.state = MemoryEntry.State.KEPT
        entry.save(update_fields=["state"])
        index_entry(entry)
    return entry


@dataclass(frozen=True, slots=True)
class DayChanges:
    """The changes of a day, made before anything is locked, from entries in these `revisions`."""

    user: User
    day: date
    revisions: Mapping[UUID, int]
    edits: Edits
    added: NewEntries

    def are_current(self) -> bool:
        return revisions_of_day(self.user.pk, self.day) == self.revisions


def make_day_changes(
    *,
    user: User,
    day: date,
    rows: Sequence[MemoryEntry],
    sections: Sequence[DaySection],
    now: datetime,
    version: str | None,
) -> DayChanges:
    """Return the changes that turn a day with the entries `rows` into `sections`: other words are edits, a section
    without an id is new. Missing entries stay: the caller forgets them.

    Raise Conflict where `version` is not that of the day, or a section names an entry that is not there.
    """
    revisions = {row.pk: row.revision for row in rows}
    if version and version != (present := day_version(rows)):
        raise Conflict(CHANGED, details={"version": present})
    known = {str(row.pk): row for row in rows}
    _check_ids(sections, known)
    texts = {known[one.entry_id]: one.text for one in sections if one.entry_id is not None}
    changed = {entry: text for entry, text in texts.items() if text != entry.text.strip()}
    edits = _make_edits(changed, MemoryEntry.Author.USER)
    added = _make_entries(user, [section for section in sections if section.entry_id is None], day, now)
    return DayChanges(user, day, revisions, edits, added)


@transaction.atomic
def store_day_changes(changes: DayChanges) -> None:
    """Store the changes of a day. Raise Conflict where the day was changed since it was read."""
    lock_day(changes.user, changes.day)
    if not changes.are_current():
        present = day_version(day_entries(changes.user.pk, changes.day))
        raise Conflict(CHANGED, details={"version": present})
    _store_edits(changes.edits)
    _store_entries(changes.added)


def _check_ids(sections: Sequence[DaySection], known: dict[str, MemoryEntry]) -> None:
    ids = [section.entry_id for section in sections if section.entry_id is not None]
    missing = sorted(set(ids) - set(known))
    if missing:
        raise Conflict(
            "The Markdown names an entry that is not in this day, or not any more. Read the day again.",
            details={"entry_ids": missing},
        )
    if len(ids) != len(set(ids)):
        raise InvalidInput("The Markdown names an entry twice.", details=[{"field": "markdown"}])


@transaction.atomic
def reject_entry(*, user: User, entry_id: str, now: datetime) -> None:
    """Delete a proposed entry, and bar it from being proposed again. Raise Conflict for one that was approved
    already."""
    entry = lock_entry(user, entry_id)
    if entry.state != MemoryEntry.State.PROPOSED:
        raise Conflict("This entry was approved already. Delete it to forget it.")
    raise_tombstones(user.pk, [entry.text], now)
    entry.delete()


@transaction.atomic
def drop_entries(entries: Iterable[MemoryEntry]) -> None:
    """Delete entries with their history and their place in the index. Nothing is barred from being learned: other
    entries say it now."""
    rows = list(entries)
    for user_id in {entry.user_id for entry in rows}:
        own = [entry for entry in rows if entry.user_id == user_id]
        remove_entries(user_id, [entry.pk for entry in own])
        mark_days_stale(user_id, {entry.day for entry in own})
        delete_entries(user_id, [entry.pk for entry in own])


def delete_entries(user_id: UUID, entry_ids: Collection[UUID]) -> None:
    """Delete entries of the user with their history, sources and claims, in a fixed number of statements. To be called
    in a transaction that holds them; the caller removes them from the index."""
    drop_entry_claims(user_id, entry_ids)
    EntryRevision.objects.filter(entry__in=entry_ids).delete()
    EntrySource.objects.filter(entry__in=entry_ids).delete()
    delete_rows(MemoryEntry, entry_ids)
