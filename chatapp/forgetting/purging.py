"""Takes what was deleted out of the database's own files: there it lies on until it is overwritten."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.apps import apps
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper

from chatapp.forgetting.actions.purging import clear_purge_marks, note_horizons
from chatapp.forgetting.selectors.removals import horizons, purge_marks

log = logging.getLogger(__name__)

JOURNAL_TIMEOUT_MS = 500
REWRITTEN_BYTES = 16 * 2**20
"""Of a table at most, while the service runs: nobody can read or write it for as long as that takes."""
LOCK_TIMEOUT_MS = 200
ADVISORY_LOCK = 0x70757267


def purge_journal() -> bool:
    """SQLite overwrites what is deleted (`secure_delete`), and keeps it in its journal until that is written back. Here
    at once, where no reader holds it up; no writer waits for long. Whether it is gone."""
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        return False
    with connection.cursor() as cursor:
        [[timeout_ms]] = cursor.execute("PRAGMA busy_timeout").fetchall()
        cursor.execute(f"PRAGMA busy_timeout={JOURNAL_TIMEOUT_MS}")
        [[is_busy, *_]] = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        cursor.execute(f"PRAGMA busy_timeout={timeout_ms}")
    return not is_busy


def purge_deleted(upto: int, *, rewritten_bytes: int | None = REWRITTEN_BYTES) -> bool:
    """What was deleted up to this mark; False where something held it up, and it is to be tried again.

    On PostgreSQL tables of at most `rewritten_bytes` are written anew (None: all of them), larger ones vacuumed: there
    the space may be used again, and what lay in it is unreadable to the database, but not overwritten yet.
    """
    marks = purge_marks(upto)
    if not marks.exists():
        return True
    if connection.vendor != "sqlite":
        return _vacuum_all(upto, rewritten_bytes) and not marks.exists()
    is_done = purge_journal()
    if is_done:
        clear_purge_marks(marks)
    return is_done


def _vacuum_all(upto: int, rewritten_bytes: int | None) -> bool:
    """Clears the marks of what nobody may see any more: newer ones wait on."""
    if connection.in_atomic_block:
        return False
    note_horizons(upto)
    with connection.cursor() as cursor, _alone(cursor) as is_alone:
        horizon = _passed_horizon(cursor, upto) if is_alone else None
        if horizon is None:
            return False
        vacuumed = [_vacuum(cursor, table, size, rewritten_bytes) for table, size in _tables(cursor)]
    if all(vacuumed):
        clear_purge_marks(purge_marks(upto).filter(horizon__lte=horizon))
    return all(vacuumed)


@contextmanager
def _alone(cursor: CursorWrapper) -> Iterator[bool]:
    """One worker does it for all."""
    cursor.execute("SELECT pg_try_advisory_lock(%s)", [ADVISORY_LOCK])
    is_ours = bool(cursor.fetchone()[0])
    try:
        yield is_ours
    finally:
        if is_ours:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [ADVISORY_LOCK])


def _passed_horizon(cursor: CursorWrapper, upto: int) -> int | None:
    """The highest that no other transaction is below: what one may look at, no vacuum removes."""
    cursor.execute(
        "SELECT seen::text::bigint FROM pg_stat_activity, unnest(ARRAY[backend_xid, backend_xmin]) AS seen"
        " WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()"
        " AND seen IS NOT NULL"
    )
    seen = [number for [number] in cursor.fetchall()]
    passed = (one for one in horizons(upto) if not any(is_below(number, one) for number in seen))
    return next(passed, None)


def is_below(number: int, horizon: int) -> bool:
    """Numbers of transactions have 32 bits and go round; those of horizons have 64."""
    return (number - horizon) % 2**32 >= 2**31


def _tables(cursor: CursorWrapper) -> list[tuple[str, int]]:
    """Ours, with their sizes. A role that does not own them is told so by PostgreSQL, in its log."""
    names = [model._meta.db_table for model in apps.get_app_config("chatapp").get_models(True)]
    cursor.execute(
        "SELECT relname, pg_table_size(oid) FROM pg_class"
        " WHERE relname = ANY(%s) AND relkind = 'r' AND pg_table_is_visible(oid) ORDER BY relname",
        [names],
    )
    return list(cursor.fetchall())


def _vacuum(cursor: CursorWrapper, table: str, size_bytes: int, rewritten_bytes: int | None) -> bool:
    is_rewritten = rewritten_bytes is None or size_bytes <= rewritten_bytes
    cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_TIMEOUT_MS}ms"])
    try:
        cursor.execute(f"VACUUM {'(FULL)' if is_rewritten else ''} {connection.ops.quote_name(table)}")
    except OperationalError as error:  # somebody uses it
        log.info("%s is vacuumed later: %s", table, error)
        return False
    finally:
        cursor.execute("RESET lock_timeout")
    return True
