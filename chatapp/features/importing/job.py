"""Imports uploaded files in a worker, some seconds at a time, so that other work runs in between.

The file stays below DATA_DIR until its import is done; after an internal error it can be retried for a while. Each turn
reads the file from its beginning and skips what was imported.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID

from django.conf import settings

from chatapp.accounts.models import User
from chatapp.features.importing.importer import Report, import_file
from chatapp.features.importing.job_actions import (
    claim_import,
    create_import,
    delete_old_imports,
    end_import,
    give_up_abandoned,
    is_stuck,
    note_progress,
    pause_import,
)
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import forgotten_sources, needs_file, waiting_imports
from chatapp.features.importing.stream import Progress
from chatapp.features.importing.values import Unreadable, title_of
from chatapp.operations import clock
from chatapp.operations.database.access import uuid_or_none
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.threads import OUTAGE_ERRORS
from chatapp.operations.database.work_budget import Pace, yield_to_answers
from chatapp.operations.storage.durable_files import sync_folder
from chatapp.operations.workers.jobs import wake_worker

log = logging.getLogger(__name__)

TURN_S = 20.0
"""Counted from the first new conversation, because each turn has to read the earlier ones again."""
NOTED_EVERY_S = 1.0
GONE = "The file no longer exists. Please upload it again."
BROKEN = "Something went wrong on our side; it was logged. Your file is kept for two days: try again."
OLD_DRAFT = timedelta(minutes=5)
"""The file exists for some moments before its row."""


class LeaseLost(Exception):
    """Another worker has the import, or its row is gone."""


def folder() -> Path:
    return Path(settings.DATA_DIR) / "imports"


def begin(*, user: User, name: str, chunks: Iterable[bytes], size_bytes: int) -> Import:
    """Store the file, then the row of its import. Raise Conflict for too many imports, TooLarge."""
    import_id = new_id()
    folder().mkdir(parents=True, exist_ok=True)
    path = folder() / str(import_id)
    try:
        with path.open("wb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            # Sync before storing the row: an accepted import must survive a crash.
            os.fsync(file.fileno())
        sync_folder(folder())
        return create_import(
            user=user,
            import_id=import_id,
            file_name=title_of(name) or "export",
            size_bytes=size_bytes,
            most_bytes=settings.MAX_STORED_BYTES,
            now=clock.now(),
        )
    except BaseException:
        # No row references the file, even if the request was cancelled.
        path.unlink(missing_ok=True)
        raise


def import_some(import_id: UUID, turn_s: float = TURN_S) -> None:
    """Continue an import for a while, and wake a worker again if it is not done."""
    row = claim_import(import_id=import_id, now=clock.now())
    if row is None:
        return
    if is_stuck(row):
        log.error("Import %s made no progress and was given up; it was started %s times.", row.pk, row.fence)
        end_import(row=row, error=BROKEN, now=clock.now(), keeps_file=True)
        return
    turn = _Turn(row, turn_s)
    path = folder() / str(row.pk)
    error = ""
    keeps_file = False
    try:
        is_done = import_file(
            user=row.user,
            path=path,
            report=turn.report,
            tell=turn.tell,
            beat=turn.beat,
            forgotten=partial(forgotten_sources, row),
            # No time limit here: `tell` decides when a turn is over.
            pace=Pace(seconds=float("inf"), sleep=turn.rest),
        )
    except Unreadable as unreadable:
        is_done, error = True, str(unreadable)
    except FileNotFoundError:
        is_done, error = True, GONE
    except LeaseLost:  # the row and the file are not this turn's to change
        return
    except OUTAGE_ERRORS:  # the sweep continues the import; the file is kept
        raise
    except Exception:
        log.exception("Import %s failed.", row.pk)
        is_done, error, keeps_file = True, BROKEN, True
    if not turn.note():
        return
    if is_done:
        # End the row first: the sweep deletes a file that no row needs.
        end_import(row=row, error=error, now=clock.now(), keeps_file=keeps_file)
        if not keeps_file:
            path.unlink(missing_ok=True)
    else:
        pause_import(row=row, now=clock.now())


class _Turn:
    """The progress of a turn, stored in the row about once a second."""

    def __init__(self, row: Import, turn_s: float) -> None:
        self.row, self.report = row, Report()
        self._before = row.report
        self._turn_s, self._began, self._noted = turn_s, 0.0, time.monotonic()

    def tell(self, report: Report, progress: Progress) -> bool:
        now = time.monotonic()
        # Each turn starts at the beginning of the file, but the progress shown must not go back.
        self.row.read_bytes = max(self.row.read_bytes, min(progress.read, progress.total))
        self.row.total_bytes = progress.total
        if report.conversations and not self._began:
            self._began = now
        self.beat()
        return not (self._began and now - self._began >= self._turn_s)

    def beat(self) -> None:
        """Renew the lease. Raise LeaseLost."""
        now = time.monotonic()
        if now - self._noted >= NOTED_EVERY_S:
            self._noted = now
            if not self.note():
                raise LeaseLost

    def rest(self, seconds: float) -> None:
        """Rest between two pieces of a long conversation. Raise LeaseLost."""
        self.beat()
        yield_to_answers(seconds)

    def note(self) -> bool:
        """Store the results of earlier turns and this one. Return False if another worker has taken over."""
        now = self.report.as_json()
        before = self._before
        added = {name: before.get(name, 0) + now[name] for name in ("conversations", "messages")}
        # This turn skips what earlier turns imported, but that was not known before the import.
        known = max(now["known"] - before.get("conversations", 0), before.get("known", 0))
        left_out = dict(before.get("left_out", {}))
        # Add up: what a conversation leaves out is counted only in the turn that stores it.
        for what, count in now["left_out"].items():
            left_out[what] = left_out.get(what, 0) + count
        # A turn that ends earlier in the file has found fewer problems.
        if before.get("problem_count", 0) > now["problem_count"]:
            now |= {name: before[name] for name in ("problem_count", "problems")}
        report = now | added | {"known": known, "left_out": left_out}
        return note_progress(row=self.row, report=report, now=clock.now())


def delete_files(import_ids: Iterable[UUID]) -> None:
    for import_id in import_ids:
        (folder() / str(import_id)).unlink(missing_ok=True)


def sweep(now: datetime) -> None:
    """Wake workers for imports that no worker has, and delete files that no import needs."""
    for import_id in waiting_imports(now):
        wake_worker("chatapp.features.importing.tasks.import_some", str(import_id))
    delete_old_imports(now=now)
    give_up_abandoned(now=now)
    for path in folder().glob("*-*-*-*-*"):
        # Other files are not ours to delete.
        if (named := uuid_or_none(path.name)) is None:
            continue
        with suppress(FileNotFoundError):  # a worker has just finished with it
            is_old = path.stat().st_mtime < (now - OLD_DRAFT).timestamp()
            if is_old and not needs_file(named):
                path.unlink()
