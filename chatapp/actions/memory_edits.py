"""What users change in their memory: entries of their own, other words, a day as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from uuid import UUID

from django.db import transaction

from chatapp.actions.memory import mark_days_stale, rewrite_entry
from chatapp.actions.purging import mark_purge
from chatapp.actions.search import index_entry, remove_entries
from chatapp.actions.tombstones import raise_tombstones
from chatapp.errors import Conflict, InvalidInput, NotFound
from chatapp.models import MemoryEntry, User
from chatapp.selectors.access import lock_entry, lock_shared_entry
from chatapp.selectors.memory import day_version, lock_day, user_zone

CHANGED = "It was changed meanwhile. Read it again and repeat your change."


@dataclass(frozen=True, slots=True)
class DaySection:
    """What a day shall say at one place. `entry_id` is None for what is new, `clock` the local time it is dated."""

    entry_id: str | None
    text: str
    clock: time | None = None


@transaction.atomic
def add_entry(
    *, user: User, text: str, now: datetime, day: date | None = None, clock: time | None = None
) -> MemoryEntry:
    """In the user's own words, on that day of theirs; today by default."""
    zone = user_zone(user.time_zone)
    here = now.astimezone(zone)
    day = day or here.date()
    is_now = clock is None and day == here.date()
    entry = MemoryEntry.objects.create(
        user=user,
        day=day,
        text=text,
        author=MemoryEntry.Author.USER,
        created_at=now if is_now else datetime.combine(day, clock or here.time(), zone),
    )
    index_entry(entry)
    return entry


@transaction.atomic
def edit_entry(*, user: User, entry_id: str, text: str, revision: int | None = None) -> MemoryEntry:
    """Raises Conflict where `revision` is given and is not the present one."""
    entry = lock_entry(user, entry_id)
    if revision is not None:
        check_revision(entry, revision)
    rewrite_entry(entry, text, MemoryEntry.Author.USER)
    return entry


def check_revision(entry: MemoryEntry, read: int) -> None:
    """Raises Conflict where it is not the one that was read."""
    if read != entry.revision:
        raise Conflict(CHANGED, details={"revision": entry.revision})


@transaction.atomic
def edit_shared_entry(*, entry_id: UUID, text: str, revision: int) -> MemoryEntry:
    """By an operator, who has read that revision; else raises Conflict. Its user sees who wrote it, and can revert
    it."""
    entry = lock_shared_entry(entry_id)
    check_revision(entry, revision)
    rewrite_entry(entry, text, MemoryEntry.Author.OPERATOR)
    return entry


@transaction.atomic
def revert_entry(*, user: User, entry_id: str, revision: int) -> MemoryEntry:
    """Says again what it said then: a new revision, so that this can be reverted, too."""
    entry = lock_entry(user, entry_id)
    then = entry.revisions.filter(number=revision).first()
    if then is None and revision != entry.revision:
        raise NotFound("This entry has no such revision.")
    if then is not None:
        rewrite_entry(entry, then.text, MemoryEntry.Author.USER)
    return entry


@transaction.atomic
def approve_entry(*, user: User, entry_id: str) -> MemoryEntry:
    """What was proposed is remembered from now on."""
    entry = lock_entry(user, entry_id)
    if entry.state == MemoryEntry.State.PROPOSED:
        entry.state = MemoryEntry.State.KEPT
        entry.save(update_fields=["state"])
        index_entry(entry)
    return entry


@transaction.atomic
def rewrite_day(
    *, user: User, day: date, sections: Sequence[DaySection], now: datetime, version: str
) -> None:
    """Afterwards the day says what `sections` say: other words are edits, what has no id is new. What is missing stays:
    whoever calls this forgets it.

    Raises Conflict where `version` is not that of the day, or a section names what is not there.
    """
    rows = lock_day(user, day)
    if version != day_version(rows):
        raise Conflict(CHANGED, details={"version": day_version(rows)})
    known = {str(row.pk): row for row in rows}
    _check_ids(sections, known)
    for section in sections:
        if section.entry_id is None:
            add_entry(user=user, text=section.text, now=now, day=day, clock=section.clock)
        elif section.text != known[section.entry_id].text.strip():
            rewrite_entry(known[section.entry_id], section.text, MemoryEntry.Author.USER)


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
    """What was proposed is not proposed again. Raises Conflict for what was approved already."""
    entry = lock_entry(user, entry_id)
    if entry.state != MemoryEntry.State.PROPOSED:
        raise Conflict("This entry was approved already. Delete it to forget it.")
    raise_tombstones(user.pk, [entry.text], now)
    entry.delete()
    mark_purge()


@transaction.atomic
def drop_entries(entries: Iterable[MemoryEntry]) -> None:
    """With their history and their place in the index; what they said is not forgotten, it stands elsewhere now."""
    for entry in entries:
        remove_entries(entry.user_id, [entry.pk])
        mark_days_stale(entry.user_id, [entry.day])
        entry.delete()
