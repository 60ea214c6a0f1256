"""Changes the text of a day: sections become edits of its entries, or new entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.long_term.actions.entries import (
    CHANGED,
    Edits,
    NewEntries,
    make_edits,
    make_entries,
    store_edits,
    store_entries,
)
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.entries import day_entries, day_version, lock_day, revisions_of_day
from chatapp.operations.database.statements import as_stored
from chatapp.operations.errors import Conflict, InvalidInput


@dataclass(frozen=True, slots=True)
class DaySection:
    """One section of a day after the change. `entry_id` is None for a new one; `clock` is its local time."""

    entry_id: str | None
    text: str
    clock: time | None = None


@dataclass(frozen=True, slots=True)
class DayChanges:
    """The changes of a day, prepared without a lock from entries in these `revisions`."""

    user: User
    day: date
    revisions: Mapping[UUID | str, int]
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
    """Return the changes that turn a day with the entries `rows` into `sections`: changed texts become edits, sections
    without an id become new entries. The caller forgets missing entries.

    Raise Conflict if `version` is not that of the day or an entry is unknown, InvalidInput if one is named twice.
    """
    revisions = {as_stored(row.pk): row.revision for row in rows}
    if version and version != (present := day_version(rows)):
        raise Conflict(CHANGED, details={"version": present})
    known = {str(row.pk): row for row in rows}
    _check_ids(sections, known)
    texts = {known[one.entry_id]: one.text for one in sections if one.entry_id is not None}
    # Section texts are stripped, which does not count as an edit.
    changed = {entry: text for entry, text in texts.items() if text != entry.text.strip()}
    edits = make_edits(changed, MemoryEntry.Author.USER)
    new = [(section.text, section.clock) for section in sections if section.entry_id is None]
    added = make_entries(user, new, day, now)
    return DayChanges(user, day, revisions, edits, added)


@transaction.atomic
def store_day_changes(changes: DayChanges) -> None:
    """Store the changes of a day. Raise Conflict if the day was changed since it was read."""
    lock_day(changes.user, changes.day)
    # Check again under the lock, because the changes may be based on former entries.
    if not changes.are_current():
        present = day_version(day_entries(changes.user.pk, changes.day))
        raise Conflict(CHANGED, details={"version": present})
    store_edits(changes.edits)
    store_entries(changes.added)


def _check_ids(sections: Sequence[DaySection], known: dict[str, MemoryEntry]) -> None:
    ids = [section.entry_id for section in sections if section.entry_id is not None]
    missing = sorted(set(ids) - set(known))
    if missing:
        raise Conflict(
            "The Markdown refers to an entry that does not belong to this day. Reload the day.",
            details={"entry_ids": missing},
        )
    if len(ids) != len(set(ids)):
        raise InvalidInput("The Markdown refers to an entry twice.", details=[{"field": "markdown"}])
