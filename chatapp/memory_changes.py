"""What users change in their memory, as a whole: the rows in one transaction, then the files that show them. A crash
between is mended by the sweep."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import date, datetime

from chatapp import clock, memory_files
from chatapp.actions import memory_edits
from chatapp.actions import profile as profile_actions
from chatapp.actions.memory_edits import DaySection
from chatapp.errors import NotFound
from chatapp.forgetting import forget_chosen
from chatapp.models import ForgetReceipt, MemoryEntry, Profile, User
from chatapp.selectors.access import accessible_entry
from chatapp.selectors.memory import day_entries


def add_entry(*, user: User, text: str, day: date | None, now: datetime) -> MemoryEntry:
    return _shown(memory_edits.add_entry(user=user, text=text, day=day, now=now))


def edit_entry(*, user: User, entry_id: str, text: str, revision: int | None) -> MemoryEntry:
    return _shown(memory_edits.edit_entry(user=user, entry_id=entry_id, text=text, revision=revision))


def revert_entry(*, user: User, entry_id: str, revision: int) -> MemoryEntry:
    return _shown(memory_edits.revert_entry(user=user, entry_id=entry_id, revision=revision))


def rewrite_day(
    *, user: User, day: date, sections: Sequence[DaySection], version: str | None, now: datetime
) -> list[MemoryEntry]:
    """What the day says afterwards. What is missing is forgotten, but for the lines that were only moved."""
    missing = memory_edits.rewrite_day(user=user, day=day, sections=sections, version=version, now=now)
    kept = {line.strip() for section in sections for line in section.text.splitlines()}
    moved = [entry for entry in missing if kept & _lines(entry)]
    whole = [entry for entry in missing if entry not in moved]
    if whole:
        _forget(user, whole, ForgetReceipt.What.ENTRY)
    for entry in moved:
        _forget_rest(user, entry, kept, now)
    memory_files.write_days([(user.pk, day)])
    return day_entries(user.pk, day)


def _lines(entry: MemoryEntry) -> set[str]:
    return {line.strip() for line in entry.text.splitlines()} - {""}


def _forget_rest(user: User, entry: MemoryEntry, kept: Set[str], now: datetime) -> None:
    """Of an entry whose lines stand elsewhere now, those that do not."""
    gone = sorted(_lines(entry) - kept)
    if gone:
        what = ForgetReceipt.What.CHOSEN
        forget_chosen(user, [], [entry.pk], what=what, now=now, lines={entry.pk: gone})
    memory_edits.drop_entries([entry])


def approve_entry(*, user: User, entry_id: str) -> MemoryEntry:
    return _shown(memory_edits.approve_entry(user=user, entry_id=entry_id))


def reject_entry(*, user: User, entry_id: str) -> None:
    memory_edits.reject_entry(user=user, entry_id=entry_id, now=clock.now())


def forget_entry(*, user: User, entry_id: str) -> None:
    _forget(user, [accessible_entry(user, entry_id)], ForgetReceipt.What.ENTRY)


def forget_day(*, user: User, day: date) -> None:
    """Raises NotFound where there is nothing to forget."""
    rows = day_entries(user.pk, day)
    if not rows:
        raise NotFound("There is no memory of this day.")
    _forget(user, rows, ForgetReceipt.What.DAY)


def _forget(user: User, rows: Sequence[MemoryEntry], what: str) -> None:
    forget_chosen(user, [], [row.pk for row in rows], what=what, now=clock.now())


def _shown(entry: MemoryEntry) -> MemoryEntry:
    memory_files.write_days([(entry.user_id, entry.day)])
    return entry


def write_profile(*, user: User, text: str, version: int | None, now: datetime) -> Profile:
    profile = profile_actions.write_profile(user_id=user.pk, text=text, version=version, now=now)
    memory_files.write_profiles([user.pk])
    return profile


def revert_profile(*, user: User, number: int, now: datetime) -> Profile:
    profile = profile_actions.revert_profile(user=user, number=number, now=now)
    memory_files.write_profiles([user.pk])
    return profile
