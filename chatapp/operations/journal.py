"""Take what was deleted out of SQLite's journal: `secure_delete` overwrites it in the database alone."""

from __future__ import annotations

import time

from django.db import connection

from chatapp.operations import jobs

ATTEMPTS = 10
BUSY_MS = 200
PAUSE_S = 0.25


def truncate_journal() -> bool:
    """Write the journal back and cut it to nothing. Return False where a reader prevents it; no writer waits long."""
    if connection.vendor != "sqlite":
        return True
    # SQLite refuses a checkpoint within a transaction of the same connection.
    if connection.in_atomic_block:
        return False
    with connection.cursor() as cursor:
        # The connection is used by others later, with their own patience.
        [[timeout_ms]] = cursor.execute("PRAGMA busy_timeout").fetchall()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        cursor.execute(
            "PRAGMA wal_checkpoint(PASSIVE)"
        ).fetchall()  # writers go on; little is left for the other
        [[is_busy, *_]] = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cursor.execute(f"PRAGMA busy_timeout={timeout_ms}")
    return not is_busy


def wake_to_truncate() -> None:
    """Have the journal truncated once the current transaction is committed; without SQLite there is none."""
    if connection.vendor == "sqlite":
        jobs.wake_worker("chatapp.operations.tasks.truncate_journal_of_deleted", "")


def truncate_patiently() -> None:
    """Truncate the journal after something was deleted, in the worker: within about five seconds, else with the next
    sweep."""
    for _attempt in range(ATTEMPTS):
        if truncate_journal():
            return
        time.sleep(PAUSE_S)
