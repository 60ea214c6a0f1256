"""Forgotten text is removed from the files of the database: SQLite's file and journal, PostgreSQL's tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from allauth.usersessions.models import UserSession
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.management.commands import purge_deleted
from chatapp.operations import tasks
from chatapp.operations.database.journal import truncate_journal, truncate_patiently
from tests.forgetting.everywhere import tables_with

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "heliotrope-4711"
KEPT = "plum-tree-2027"


def database_files() -> Iterator[Path]:
    if connection.vendor == "sqlite":
        yield from Path(connection.settings_dict["NAME"]).parent.glob("*.sqlite3*")
        return
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
        cursor.execute(
            "SELECT current_setting('data_directory'), oid FROM pg_database WHERE datname = current_database()"
        )
        [[folder, oid]] = cursor.fetchall()
    yield from (Path(folder) / "base" / str(oid)).iterdir()


def files_with(word: str) -> list[Path]:
    return [path for path in database_files() if word.encode() in path.read_bytes()]


@pytest.fixture
def forgotten(alice: User, alice_client: Client) -> None:
    """Create two entries, then change and forget one of them."""
    ids = [
        alice_client.post("/api/v1/memory/entries", {"text": text}, content_type="application/json").json()[
            "id"
        ]
        for text in (f"The word is {SECRET}.", f"There is the {KEPT}.")
    ]
    change = {"text": f"The password is {SECRET}."}
    alice_client.patch(f"/api/v1/memory/entries/{ids[0]}", change, content_type="application/json")
    # SQLite samples no text; ANALYZE would only change later query plans.
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    assert files_with(SECRET)
    assert alice_client.delete(f"/api/v1/memory/entries/{ids[0]}").status_code == 204
    assert tables_with(SECRET) == []


@pytest.mark.mechanism("forgetting.database-files")
def test_forgotten_bytes_are_removed_and_others_stay(forgotten: None) -> None:
    """SQLite removes the bytes by itself; PostgreSQL keeps dead rows until an operator runs `purge_deleted`."""
    if connection.vendor == "sqlite":
        truncate_patiently()
    else:
        assert files_with(SECRET), "dead, but not overwritten"
        call_command("purge_deleted")
    assert files_with(SECRET) == []
    assert files_with(KEPT)


def test_purging_includes_tables_of_libraries(alice: User) -> None:
    seen = {"ip": "192.0.2.1", "session_key": "key", "user_agent": SECRET}
    UserSession.objects.create(user=alice, **seen)
    assert files_with(SECRET)
    UserSession.objects.all().delete()
    call_command("purge_deleted")
    assert files_with(SECRET) == []


def test_most_of_the_journal_is_written_back_while_others_write(db: None) -> None:
    """The truncating checkpoint holds the write lock until everything left is written back."""
    with CaptureQueriesContext(connection) as sent:
        assert truncate_journal()
    checkpoints = [query["sql"] for query in sent.captured_queries if "wal_checkpoint" in query["sql"]]
    kinds = ["PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(TRUNCATE)"]
    assert checkpoints == (kinds if connection.vendor == "sqlite" else [])


@pytest.mark.postgres
def test_the_command_reports_a_table_that_it_may_not_write(forgotten: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE plain")
        cursor.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO plain")
        cursor.execute("SET ROLE plain")
        try:
            with pytest.raises(
                CommandError, match=r"Not every table was rewritten .*: run this as the owner"
            ):
                call_command("purge_deleted")
        finally:
            cursor.execute("RESET ROLE; DROP OWNED BY plain; DROP ROLE plain")


@pytest.mark.postgres
def test_the_planner_samples_no_column_of_user_text() -> None:
    """Turn sampling off for new columns, too, as the end of `0001_initial` does. SQLite samples no values."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
            " WHERE relname LIKE 'chatapp\\_%' AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"
            " AND format_type(atttypid, NULL) IN ('text', 'jsonb', 'json', 'bytea', 'character varying')"
            " AND coalesce(attstattarget, -1) <> 0 AND (atttypmod = -1 OR atttypmod - 4 >= 100)"
        )
        assert cursor.fetchall() == []


@pytest.mark.mechanism("forgetting.database-files")
@pytest.mark.parametrize(
    "look", ["SELECT count(*) FROM chatapp_memoryentry", "SELECT count(*) FROM django_migrations"]
)
def test_the_command_refuses_while_another_transaction_is_open(
    forgotten: None, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction has read the purged table, or another one: its snapshot may still need deleted rows."""
    monkeypatch.setattr(purge_deleted, "TRANSACTIONS_END_WITHIN_S", 0.2)
    with closing(another_connection()) as other:
        other.execute("BEGIN" if connection.vendor == "sqlite" else "BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute(look)
        with pytest.raises(CommandError, match="in use"):
            call_command("purge_deleted")
        other.execute("ROLLBACK")
    monkeypatch.undo()
    call_command("purge_deleted")
    assert files_with(SECRET) == []


@pytest.mark.postgres
def test_the_command_waits_for_a_transaction_that_ends_soon(
    forgotten: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Autovacuum may begin such a transaction at any time."""
    found: list[bool] = []
    look = purge_deleted._has_open_transactions

    def look_and_end_it(cursor: Any) -> bool:
        found.append(look(cursor))
        other.rollback()
        return found[-1]

    monkeypatch.setattr(purge_deleted, "_has_open_transactions", look_and_end_it)
    with closing(another_connection()) as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute("SELECT count(*) FROM django_migrations")
        call_command("purge_deleted")
    assert found[0]
    assert not found[-1]
    assert files_with(SECRET) == []


def test_only_the_command_runs_vacuum(alice: User, alice_client: Client) -> None:
    made = alice_client.post("/api/v1/memory/entries", {"text": SECRET}, content_type="application/json")
    with CaptureQueriesContext(connection) as sent:
        assert alice_client.delete(f"/api/v1/memory/entries/{made.json()['id']}").status_code == 204
        tasks.sweep()
    assert not [query for query in sent.captured_queries if "VACUUM" in query["sql"].upper()]


def another_connection() -> Any:
    parameters = connection.get_connection_params()
    if connection.vendor == "sqlite":
        return sqlite3.connect(parameters["database"], isolation_level=None)
    names = ("host", "port", "user", "password", "dbname")
    return psycopg.connect(**{name: parameters[name] for name in names if parameters.get(name)})
