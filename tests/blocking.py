"""Checks which transactions wait for each other in PostgreSQL, for tests of concurrent writers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet


def somebody_waits() -> bool:
    """Return whether another session waits for a lock that this thread's transaction holds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])


def check_order(write: Callable[[], object], held: QuerySet[Any], *free: QuerySet[Any]) -> None:
    """Check that a concurrent `write` waits for the rows `held`, without having locked any of the rows `free`."""
    with beside(write, lambda: lock_at_once(held)) as other:
        assert other.is_alive(), "it needs what is held"
        for rows in free:
            lock_at_once(rows)


def check_no_wait(write: Callable[[], object], change: Callable[[], object]) -> None:
    """Check that a concurrent `write` does not wait for an uncommitted `change`."""
    with beside(write, change) as other:
        assert not other.is_alive(), "it waits"


@contextmanager
def beside(write: Callable[[], object], change: Callable[[], object]) -> Iterator[threading.Thread]:
    """Run the block inside a transaction that made `change`, once a concurrent `write` has finished or waits for it."""
    failed: list[DatabaseError] = []

    def run() -> None:
        try:
            write()
        except DatabaseError as error:
            failed.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=run)
    try:
        with transaction.atomic():
            change()
            other.start()
            while other.is_alive() and not somebody_waits():
                other.join(0.02)
            yield other
    finally:
        if other.ident is not None:
            other.join()
    assert not failed, failed


def lock_at_once(rows: QuerySet[Any]) -> None:
    """Lock these rows. Raise DatabaseError if another transaction holds one of them."""
    assert list(rows.select_for_update(nowait=True).order_by("pk"))
