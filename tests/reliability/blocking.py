"""Makes a process block until it is killed, with locks that it waits for and a pipe without a reader."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from tests.reliability.installation import Installation
from tests.servers.waiting import PATIENCE_S


@dataclass
class WriteLock:
    """While this is held, memory entries can be read but not written."""

    installation: Installation
    _holder: Any = field(default=None)

    def take(self) -> None:
        if self.installation.is_production:
            self._holder = psycopg.connect(self.installation.env["DATABASE_URL"])
            self._holder.execute("LOCK TABLE chatapp_memoryentry IN EXCLUSIVE MODE")
            return
        path = Path(self.installation.env["DATA_DIR"]) / "palimpsest.sqlite3"
        # The model server's thread takes the lock, the test's thread releases it.
        self._holder = sqlite3.connect(
            path, timeout=PATIENCE_S, isolation_level=None, check_same_thread=False
        )
        self._holder.execute("BEGIN IMMEDIATE")

    def release(self) -> None:
        if self._holder is not None:
            self._holder.rollback()
            self._holder.close()
            self._holder = None


@dataclass
class FileLock:
    """While this is held, no memory file of this user can be written."""

    folder: Path
    _descriptor: int = -1

    def take(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_held_elsewhere(self) -> bool:
        with open(self.folder / ".lock", "a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False


@contextmanager
def unread_draft(path: Path) -> Iterator[None]:
    """Block any writer of this file at its draft, by making the draft a pipe without a reader."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    os.mkfifo(draft)
    try:
        yield
    finally:
        draft.unlink(missing_ok=True)
