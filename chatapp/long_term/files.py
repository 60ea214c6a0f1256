"""Writes the daily files and MEMORY.md from database rows: atomically, one writer per user at a time."""

from __future__ import annotations

import fcntl
import logging
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import date
from pathlib import Path
from uuid import UUID

from django.conf import settings

from chatapp.accounts.selectors import users_gone
from chatapp.long_term.actions.profile import mark_profile_written
from chatapp.long_term.actions.stale_days import clear_stale_marks, mark_entries_written
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors import entries as memory_selectors
from chatapp.long_term.selectors.profile import profile_of, profiles_behind
from chatapp.operations import clock
from chatapp.operations.database.schema_version import database_made_at
from chatapp.operations.storage.durable_files import replace_file, sync_folder
from memory.long_term.daily import DailyEntry, render_day

log = logging.getLogger(__name__)

_DAY_FILE = re.compile(r"\d{4}-\d\d-\d\d\.md")


def user_folder(user_id: UUID) -> Path:
    return Path(settings.DATA_DIR) / "memory" / str(user_id)


def day_path(user_id: UUID, day: date) -> Path:
    return user_folder(user_id) / f"{day.isoformat()}.md"


def _day_of(path: Path) -> date | None:
    """Return the day of a daily file; None for any other file."""
    try:
        return date.fromisoformat(path.stem) if _DAY_FILE.fullmatch(path.name) else None
    # E.g. 2026-99-99.md, which this module does not write.
    except ValueError:
        return None


@contextmanager
def _sole_writer(folder: Path) -> Iterator[None]:
    """Hold a lock across threads and processes, or a slower writer could replace a newer file with an older one."""
    folder.mkdir(parents=True, exist_ok=True)
    # Use a separate file, because the others are replaced, and a lock would stay with the replaced file.
    with open(folder / ".lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _remove_file(path: Path) -> None:
    if path.exists():
        path.unlink()
        sync_folder(path.parent)


def daily_entry(row: MemoryEntry) -> DailyEntry:
    return DailyEntry(
        id=str(row.pk),
        text=row.text,
        at=row.created_at.astimezone(row.user.zone),
        conversation_id=str(row.conversation_id) if row.conversation_id else None,
        conversation_title=row.conversation.title if row.conversation else "",
        first_message_id=str(row.first_message_id) if row.first_message_id else None,
        last_message_id=str(row.last_message_id) if row.last_message_id else None,
    )


def write_day(user_id: UUID, day: date) -> list[MemoryEntry]:
    """Write one daily file and return its entries. Remove the file if there are none. Idempotent."""
    with _sole_writer(user_folder(user_id)):
        # Read marks before entries: a mark that is set in between is kept, so that the day is written again.
        marks = memory_selectors.stale_mark_ids(user_id, day)
        rows = memory_selectors.day_entries(user_id, day)
        if rows:
            replace_file(day_path(user_id, day), render_day(day, [daily_entry(row) for row in rows]).encode())
        else:
            _remove_file(day_path(user_id, day))
    # Mark entries only after writing the file: after a crash in between, the sweep writes it again.
    mark_entries_written([row.pk for row in rows if row.written_at is None], at=clock.now())
    clear_stale_marks(marks)
    return rows


def profile_path(user_id: UUID) -> Path:
    return user_folder(user_id) / "MEMORY.md"


def write_profile(user_id: UUID) -> None:
    """Write MEMORY.md from the profile, or remove it if the profile is empty. Idempotent."""
    with _sole_writer(user_folder(user_id)):
        profile = profile_of(user_id)
        if profile.text:
            replace_file(profile_path(user_id), f"{profile.text}\n".encode())
        else:
            _remove_file(profile_path(user_id))
    # Only after writing the file, as with days.
    mark_profile_written(profile)


def write_profiles(user_ids: Iterable[UUID]) -> int:
    """Write profiles; return how many were written. The sweep retries the others."""
    written = 0
    for user_id in user_ids:
        try:
            write_profile(user_id)
            written += 1
        except OSError as error:
            log.error("The profile of user %s could not be written: %s", user_id, error)
    return written


def write_days(days: Iterable[tuple[UUID, date]]) -> int:
    """Write daily files; return how many were written. The others stay marked as stale, and the sweep retries them."""
    return sum(_try_to_write(user_id, day) is not None for user_id, day in days)


def write_stale() -> None:
    """Write all stale daily files and profiles."""
    write_days(memory_selectors.stale_days())
    write_profiles(profiles_behind())


def write_and_read(user_id: UUID, day: date) -> list[MemoryEntry]:
    """Write the daily file and return the entries of the day. If the write fails, the sweep retries it."""
    rows = _try_to_write(user_id, day)
    return memory_selectors.day_entries(user_id, day) if rows is None else rows


def _try_to_write(user_id: UUID, day: date) -> list[MemoryEntry] | None:
    try:
        return write_day(user_id, day)
    except OSError as error:
        log.error("The memory file of %s for user %s could not be written: %s", day, user_id, error)
        return None


def sweep_unwritten() -> int:
    """Write the files that lag behind their rows, e.g. after a crash; return how many."""
    return write_days(memory_selectors.outdated_days()) + write_profiles(profiles_behind())


def sweep_orphans() -> int:
    """Remove folders of deleted users, and files of profiles that were emptied just before a crash. Return how many."""
    root = Path(settings.DATA_DIR) / "memory"
    folders = dict(_folders_in(root)) if root.is_dir() else {}
    unknown, since = users_gone(folders), database_made_at().timestamp()
    gone = [user_id for user_id in unknown if _changed_at(folders[user_id]) >= since]
    for user_id in gone:
        # The next sweep retries folders that cannot be removed.
        shutil.rmtree(folders[user_id], ignore_errors=True)
    left = [user_id for user_id in folders if user_id not in unknown and profile_path(user_id).exists()]
    return len(gone) + write_profiles(user_id for user_id in left if not profile_of(user_id).text)


def _changed_at(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # the deletion of the account has removed it just now
        return 0.0


def _folders_in(root: Path) -> Iterator[tuple[UUID, Path]]:
    """Yield each user's folder. Skip other files in `root`, e.g. a file manager's `.DS_Store`."""
    for path in root.iterdir():
        with suppress(ValueError):
            if path.is_dir() and path == user_folder(user_id := UUID(path.name)):
                yield user_id, path


def rebuild_files(user_id: UUID) -> int:
    """Write all daily files and the profile of a user, and remove the files of days without entries. Return how many
    were written."""
    days = memory_selectors.all_days(user_id)
    folder = user_folder(user_id)
    for path in folder.iterdir() if folder.is_dir() else ():
        day = _day_of(path)
        if day is not None and day not in days:
            write_day(user_id, day)
    return write_days((user_id, day) for day in days) + write_profiles([user_id])
