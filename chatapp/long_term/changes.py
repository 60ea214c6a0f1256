"""Changes that users make to their memory: first the rows in one transaction, then the files. After a crash in between,
the sweep writes the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.forgetting.actions.collecting import Chosen, begin_forgetting, lock_chosen, prepare_forgetting
from chatapp.forgetting.actions.forget import ENTRIES, forget_locked
from chatapp.forgetting.actions.removals import begin_forgetting_many
from chatapp.forgetting.models import ForgetReceipt
from chatapp.forgetting.removing import Removing
from chatapp.forgetting.services import finish, finish_many, forget_chosen
from chatapp.long_term import files
from chatapp.long_term.actions import days, entries
from chatapp.long_term.actions import profile as profile_actions
from chatapp.long_term.actions.days import DaySection
from chatapp.long_term.models import MemoryEntry, Profile
from chatapp.long_term.selectors.entries import day_entries, day_entry_ids
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput, NotFound
from memory.bounds import MAX_DAY_CHANGES


def add_entry(*, user: User, text: str, day: date | None, now: datetime) -> MemoryEntry:
    return _shown(entries.add_entry(user=user, text=text, day=day, now=now))


def edit_entry(*, user: User, entry_id: str, text: str, revision: int | None) -> MemoryEntry:
    return _shown(entries.edit_entry(user=user, entry_id=entry_id, text=text, revision=revision))


def edit_shared_entry(*, entry_id: UUID, text: str, revision: int) -> None:
    """Replace the text of a shared entry. The operator's view is one transaction, so that the file is written after its
    commit. Raise Conflict if `revision` is not current."""
    entry = entries.edit_shared_entry(entry_id=entry_id, text=text, revision=revision)
    transaction.on_commit(partial(_shown, entry))


def revert_entry(*, user: User, entry_id: str, revision: int) -> MemoryEntry:
    return _shown(entries.revert_entry(user=user, entry_id=entry_id, revision=revision))


def rewrite_day(
    *, user: User, day: date, sections: Sequence[DaySection], version: str | None, now: datetime
) -> list[MemoryEntry]:
    """Replace the sections of a day, all or nothing; return its entries afterwards. Missing entries are forgotten,
    except for lines that were only moved; many of them are recorded with the changes and forgotten in batches
    afterwards. Raise Conflict; raise InvalidInput if there are too many changes for one transaction."""
    rows = day_entries(user.pk, day)
    missing = _missing(rows, sections)
    make_changes = partial(
        days.make_day_changes, user=user, day=day, sections=sections, now=now, version=version
    )
    # Prepare words, claims and rows before locking, because for many entries this takes longest.
    changes = make_changes(rows=rows)
    ahead = None
    # If all of them were forgotten meanwhile, the day was changed and is prepared again below.
    with suppress(NotFound):
        ahead = prepare_forgetting(missing.chosen_of(user, now)) if missing.at_once else None
    work = removal = done = None
    with transaction.atomic():
        # First, because forgetting counts are locked before all other rows.
        count = begin_forgetting(user.pk)
        if not changes.are_current():
            # The day was changed since it was read, so that the changes must be prepared again.
            rows = day_entries(user.pk, day)
            missing, changes, ahead = _missing(rows, sections), make_changes(rows=rows), None
        if missing.in_pieces:
            many = Chosen(user, now, entry_ids=frozenset(missing.in_pieces))
            removal = begin_forgetting_many(many, what=ForgetReceipt.What.ENTRY)
        if missing.at_once:
            chosen = missing.chosen_of(user, now)
            work = lock_chosen(
                chosen, ahead or prepare_forgetting(chosen), forgotten_count=count, beside=rows
            )
        days.store_day_changes(changes)
        done = forget_locked(work, what=ForgetReceipt.What.ENTRY) if work else None
        entries.drop_entries(missing.moved)
    if done is not None:
        finish(done)
    if removal is not None:
        finish_many(Removing(removal, now))
    return files.write_and_read(user.pk, day)


@dataclass(frozen=True, slots=True)
class _Missing:
    """Entries to remove from a day: `at_once` with its changes, or `in_pieces` after them. `moved` entries have lines
    that are in other sections now; only their other `lines` are forgotten."""

    at_once: Sequence[UUID]
    in_pieces: Sequence[UUID]
    lines: Mapping[UUID, Sequence[str]]
    moved: Sequence[MemoryEntry]

    def chosen_of(self, user: User, now: datetime) -> Chosen:
        return Chosen(user, now, entry_ids=frozenset(self.at_once), lines=self.lines)


def _missing(rows: Sequence[MemoryEntry], sections: Sequence[DaySection]) -> _Missing:
    """Return the entries that a day with the entries `rows` loses by becoming `sections`. Raise InvalidInput if too
    many sections change; entries that are only missing do not count."""
    texts = {section.entry_id: section.text for section in sections if section.entry_id}
    kept = {line.strip() for section in sections for line in section.text.splitlines()}
    missing = {row.pk: row for row in rows if str(row.pk) not in texts}
    moved = {pk: row for pk, row in missing.items() if kept & _lines(row)}
    lines = {pk: gone for pk, row in moved.items() if (gone := sorted(_lines(row) - kept))}
    same = sum(texts.get(str(row.pk)) == row.text.strip() for row in rows)
    # Limiting characters is not enough: 90,000 sections of one word blocked the database for seconds.
    _check_count(len(sections) - same + len(moved), MAX_DAY_CHANGES)
    _check_count(len(lines), ENTRIES // 2)
    whole = [pk for pk in missing if pk not in moved]
    if len(whole) > ENTRIES:
        return _Missing([*lines], whole, lines, [*moved.values()])
    return _Missing([*whole, *lines], [], lines, [*moved.values()])


def _check_count(count: int, most: int) -> None:
    """Raise InvalidInput if the changes of a day would block the database for long."""
    if count > most:
        message = f"This changes {count} sections of a day; at most {most} can be changed at once."
        raise InvalidInput(message, details=[{"field": "markdown", "message": message}])


def _lines(entry: MemoryEntry) -> set[str]:
    return {line.strip() for line in entry.text.splitlines()} - {""}


def approve_entry(*, user: User, entry_id: str) -> MemoryEntry:
    return _shown(entries.approve_entry(user=user, entry_id=entry_id))


def forget_day(*, user: User, day: date) -> None:
    """Forget all entries of a day. Raise NotFound if there are none."""
    ids = day_entry_ids(user.pk, day)
    if not ids:
        raise NotFound("There are no memory entries for this day.")
    forget_chosen(user, [], ids, what=ForgetReceipt.What.DAY, now=clock.now())


def _shown(entry: MemoryEntry) -> MemoryEntry:
    files.write_days([(entry.user_id, entry.day)])
    return entry


def write_profile(*, user: User, text: str, version: int | None, now: datetime) -> Profile:
    profile = profile_actions.write_profile(user_id=user.pk, text=text, version=version, now=now)
    files.write_profiles([user.pk])
    return profile


def revert_profile(*, user: User, number: int, now: datetime) -> Profile:
    profile = profile_actions.revert_profile(user=user, number=number, now=now)
    files.write_profiles([user.pk])
    return profile
