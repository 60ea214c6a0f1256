"""SQLite connections are kept for the next request, which runs in another thread."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from chatapp.operations.database.sqlite3 import base

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    base.close_kept()


def in_a_thread(what: Callable[[], Any]) -> Any:
    """Call a function in a new thread, as each request has one. Return its result."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(what).result()


def use() -> sqlite3.Connection:
    """Run a query and close. Return the connection that was used."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM chatapp_user")
        used = connection.connection
    connection.close()
    return used


def test_a_thread_reuses_the_connection_that_another_has_closed() -> None:
    first = in_a_thread(use)
    assert in_a_thread(use) is first
    assert [row[0] for row in first.execute("PRAGMA foreign_keys")] == [1]


def test_concurrent_threads_never_share_a_connection() -> None:
    ready = Barrier(12)
    used: list[sqlite3.Connection] = []

    def use_together() -> None:
        connection.ensure_connection()
        used.append(connection.connection)
        ready.wait()
        use()

    threads = [Thread(target=use_together) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, used))) == 12
    kept = sum(map(len, base._kept.values()))
    assert kept == base.MOST_KEPT
    base.close_kept()
    assert sum(map(len, base._kept.values())) == 0


def test_a_connection_that_failed_is_closed() -> None:
    def fail() -> sqlite3.Connection:
        connection.ensure_connection()
        used = connection.connection
        with pytest.raises(OperationalError), connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")
        connection.close()
        return used

    failed = in_a_thread(fail)
    with pytest.raises(sqlite3.ProgrammingError):
        failed.execute("SELECT 1")
    assert in_a_thread(use) is not failed


def test_a_connection_left_in_a_transaction_is_closed() -> None:
    def leave() -> sqlite3.Connection:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM chatapp_user")
            used = connection.connection
            connection.close()
        return used

    with pytest.raises(sqlite3.ProgrammingError):
        in_a_thread(leave).execute("SELECT 1")


def test_a_fork_does_not_use_the_connections_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    parents = in_a_thread(use)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert in_a_thread(use) is not parents
    base.close_kept()
    monkeypatch.undo()
    assert in_a_thread(use) is parents
