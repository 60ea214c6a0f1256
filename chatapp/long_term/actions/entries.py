"""Writes memory entries: learned from a span, or added, edited, approved, rejected and deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from agents.events import MemoryProposed
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Conversation
from chatapp.long_term.access import lock_entry, lock_shared_entry
from chatapp.long_term.actions.stale_days import mark_days_stale, memory_event
from chatapp.long_term.actions.tombstones import make_tombstones, store_tombstones
from chatapp.long_term.models import EntryRevision, EntrySource, MemoryEntry
from chatapp.long_term.selectors.entries import entries_of_the_same, kept_entries
from chatapp.long_term.selectors.pauses import is_paused
from chatapp.long_term.selectors.scopes import open_scope
from chatapp.operations import clock
from chatapp.operations.database.access import lock_rows
from chatapp.operations.database.statements import (
    Prepared,
    delete_rows,
    prepare_insert,
    prepare_update,
    run_prepared,
)
from chatapp.operations.errors import Conflict, NotFound
from chatapp.realtime import event_log
from chatapp.recall.actions.claims import replace_claims
from chatapp.recall.actions.indexing import ReadEntries, index_entries, index_entry, read_entries
from chatapp.recall.actions.removal import remove_sources


@transaction.atomic
def record_entry(
    *, compaction: Compaction, text: str, first_message_id: UUID, last_message_id: UUID, at: datetime
) -> MemoryEntry | None:
    """Store or update the entry of this span; return None if the conversation uses no memory or memory is paused.

    Keep texts that a user or an operator wrote, however often the span is summarised again.
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
        day=at.astimezone(conversation.user.zone).date(),
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
        event_log.append(conversation, memory_event(MemoryProposed, entry, conversation, at))
    return entry


def _entry_of_span(compaction: Compaction, span: Mapping[str, UUID]) -> MemoryEntry | None:
    """Return the entry of this compaction if its job is repeated, or of an undone compaction of the same span."""
    rows = MemoryEntry.objects.select_for_update().filter(conversation_id=compaction.conversation_id)
    undone = rows.filter(**span, compaction__status=Compaction.Status.UNDONE)
    return rows.filter(compaction=compaction).first() or undone.first()


def _extract_again(entry: MemoryEntry, compaction: Compaction, text: str) -> MemoryEntry:
    is_repeated = entry.compaction_id == compaction.pk
    if not is_repeated:
        entry.compaction = compaction
        entry.save(update_fields=["compaction"])
    # A repeated job changes nothing, and texts that a user or an operator wrote stay.
    if not is_repeated and entry.author == MemoryEntry.Author.EXTRACTION:
        rewrite_entry(entry, text, MemoryEntry.Author.EXTRACTION)
    return entry


def lock_entries_of(compaction: Compaction, repeated: Iterable[str]) -> None:
    """Lock all entries that `note_sources` and `reindex_entries_of` lock for this compaction, at once and so in
    order."""
    lock_rows(
        MemoryEntry.objects.filter(
            Q(pk__in=entries_of_the_same(compaction).values("pk"))
            | Q(pk__in=list(repeated), user=compaction.conversation.user_id)
        )
    )


def reindex_entries_of(compaction: Compaction) -> None:
    """Index the entries about the compaction's messages, or remove them if no summary covers them. Call it in the
    transaction that finishes, undoes or redoes the compaction. Entries are locked before the index, as everywhere."""
    of_same = kept_entries().filter(pk__in=entries_of_the_same(compaction).values("pk"))
    entries = list(of_same.select_for_update().order_by("pk"))
    if entries:
        index_entries(entries[0].user_id, entries)


def rewrite_entry(entry: MemoryEntry, text: str, author: MemoryEntry.Author) -> None:
    """Replace the text of an entry and keep the former one in its history. The caller holds the entry's lock."""
    store_edits(make_edits({entry: text}, author))


@dataclass(frozen=True, slots=True)
class Edits:
    """Statements that store new texts of entries and their history. `kept` are the approved entries among them, `read`
    their documents for the index."""

    statements: Prepared
    kept: Sequence[MemoryEntry]
    read: ReadEntries


def make_edits(texts: Mapping[MemoryEntry, str], author: MemoryEntry.Author) -> Edits:
    """Set new texts on entries of one user, and return the edits to store."""
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
        # These statements do not apply auto_now. `consolidated_at` is None, so that the profile learns the new text.
        entry.consolidated_at, entry.updated_at = None, now
    kept = [entry for entry in changed if entry.state == MemoryEntry.State.KEPT]
    columns = ("text", "author", "revision", "consolidated_at", "updated_at")
    statements = [*prepare_insert(history), *prepare_update([*changed], *columns)]
    return Edits(statements, kept, read_entries(kept[0].user_id, kept) if kept else ReadEntries({}, []))


def store_edits(edits: Edits) -> None:
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
    """Record that this span repeats these entries. Call it in the transaction that records what was learned.

    Lock the entries here: the foreign keys would lock them at the commit, after the index, against the order of
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
        # A repeated job inserts the same span again.
        ignore_conflicts=True,
    )


CHANGED = "This was changed in the meantime. Reload it and repeat your change."


@transaction.atomic
def add_entry(*, user: User, text: str, now: datetime, day: date | None = None) -> MemoryEntry:
    """Store an entry that the user wrote, on a day of the user's time zone, by default today."""
    made = make_entries(user, [(text, None)], day, now)
    store_entries(made)
    [entry] = made.entries
    record_created_id(entry.pk)
    return entry


@dataclass(frozen=True, slots=True)
class NewEntries:
    """New entries of one user, the statements that store them, and their documents for the index."""

    entries: Sequence[MemoryEntry]
    statements: Prepared
    read: ReadEntries


def make_entries(
    user: User, texts: Sequence[tuple[str, time | None]], day: date | None, now: datetime
) -> NewEntries:
    """Return new entries of a day, by default today, from texts and local times. None means the current time."""
    zone = user.zone
    here = now.astimezone(zone)
    day = day or here.date()
    entries = [
        MemoryEntry(
            user=user,
            day=day,
            text=text,
            author=MemoryEntry.Author.USER.value,
            created_at=now
            if clock is None and day == here.date()
            else datetime.combine(day, clock or here.time(), zone).astimezone(UTC),
        )
        for text, clock in texts
    ]
    return NewEntries(entries, prepare_insert(entries), read_entries(user.pk, entries))


def store_entries(new: NewEntries) -> None:
    # Their day needs no mark, because the sweep finds entries without `written_at`.
    run_prepared(new.statements)
    if new.entries:
        # New entries are not in the index. Querying it for 1,000 entries took 80 ms of CPU, under the lock.
        index_entries(new.entries[0].user_id, new.entries, new.read, are_new=True)


@transaction.atomic
def edit_entry(*, user: User, entry_id: str, text: str, revision: int | None = None) -> MemoryEntry:
    """Replace the text of an entry with the user's. Raise Conflict if `revision` is given and not current."""
    entry = lock_entry(user, entry_id)
    if revision is not None:
        check_revision(entry, revision)
    rewrite_entry(entry, text, MemoryEntry.Author.USER)
    return entry


def check_revision(entry: MemoryEntry, read: int) -> None:
    """Raise Conflict if the entry was changed since the revision that was read."""
    if read != entry.revision:
        raise Conflict(CHANGED, details={"revision": entry.revision})


@transaction.atomic
def edit_shared_entry(*, entry_id: UUID, text: str, revision: int) -> MemoryEntry:
    """Replace the text of a shared entry with an operator's. Its user sees who wrote it, and can revert it. Raise
    Conflict if `revision`, which the operator has read, is not current."""
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
    """Keep a proposed entry and index it. Idempotent."""
    entry = lock_entry(user, entry_id)
    if entry.state == MemoryEntry.State.PROPOSED:
        entry.state = MemoryEntry.State.KEPT
        entry.save(update_fields=["state"])
        index_entry(entry)
    return entry


@transaction.atomic
def reject_entry(*, user: User, entry_id: str, now: datetime) -> None:
    """Delete a proposed entry, and prevent proposing it again. Raise Conflict for an approved one."""
    entry = lock_entry(user, entry_id)
    if entry.state != MemoryEntry.State.PROPOSED:
        raise Conflict("This entry is already approved. Delete it instead.")
    store_tombstones(make_tombstones(user.pk, [entry.text], now))
    # Proposed entries are in no index and no file, so that nothing else has to be removed.
    entry.delete()


@transaction.atomic
def drop_entries(entries: Iterable[MemoryEntry]) -> None:
    """Delete entries with history and documents. Store no tombstones, because other entries have their texts now."""
    rows = list(entries)
    for user_id in {entry.user_id for entry in rows}:
        own = [entry for entry in rows if entry.user_id == user_id]
        remove_sources([entry.pk for entry in own])
        mark_days_stale(user_id, {entry.day for entry in own})
        delete_entries(user_id, [entry.pk for entry in own])


def delete_entries(user_id: UUID, entry_ids: Collection[UUID]) -> None:
    """Delete entries of the user with their history, sources and claims, in a fixed number of statements. The caller
    holds their locks, and removes them from the index."""
    # Delete claims first: after a cascade, no newer claim would supersede what these superseded.
    replace_claims(user_id, "entry_id", entry_ids, keeps_named=False)
    EntryRevision.objects.filter(entry__in=entry_ids).delete()
    EntrySource.objects.filter(entry__in=entry_ids).delete()
    delete_rows(MemoryEntry, entry_ids)
