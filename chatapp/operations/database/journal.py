"""Removes deleted content from SQLite's journal, because `secure_delete` overwrites it only in the database."""

from __future__ import annotations

import time

from django.db import connection

ATTEMPTS = 10
BUSY_MS = 200
PAUSE_S = 0.25


def truncate_journal() -> bool:
    """Checkpoint and truncate the journal. Return False if a reader or transaction prevents it within BUSY_MS."""
    if connection.vendor != "sqlite":
        return True
    # SQLite refuses a checkpoint within a transaction of the same connection.
    if connection.in_atomic_block:
        return False
    with connection.cursor() as cursor:
        # Others use the connection later, with their own timeout.
        [[timeout_ms]] = cursor.execute("PRAGMA busy_timeout").fetchall()
        cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        # Does not block writers, and leaves little work for the second checkpoint.
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        [[is_busy, *_]] = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cursor.execute(f"PRAGMA busy_timeout={timeout_ms}")
    return not is_busy


def truncate_patiently() -> None:
    """Truncate the journal in the worker, after something was deleted. After five seconds of failures, leave it to the
    next sweep."""
    for _attempt in range(ATTEMPTS):
        if truncate_journal():
            return
        time.sleep(PAUSE_S)
