"""What was forgotten leaves the files of the database itself: SQLite's and its journal, PostgreSQL's tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client

from chatapp.accounts.models import User
from chatapp.forgetting import tasks as forgetting_tasks
from chatapp.forgetting.actions.clock import begin_forgetting
from chatapp.forgetting.models import ForgetReceipt, PurgeMark
from chatapp.forgetting.purging import is_below, purge_deleted
from chatapp.forgetting.selectors.removals import due_purges, newest_purge
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
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
    """Two entries, of which one was changed and then forgotten."""
    ids = [
        alice_client.post("/api/v1/memory/entries", {"text": text}, content_type="application/json").json()[
            "id"
        ]
        for text in (f"The word is {SECRET}.", f"There is the {KEPT}.")
    ]
    change = {"text": f"The password is {SECRET}."}
    alice_client.patch(f"/api/v1/memory/entries/{ids[0]}", change, content_type="application/json")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    assert files_with(SECRET)
    assert alice_client.delete(f"/api/v1/memory/entries/{ids[0]}").status_code == 204
    assert tables_with(SECRET) == []


def purge_all() -> bool:
    newest = newest_purge()
    assert newest is not None
    return purge_deleted(newest)


@pytest.mark.mechanism("forgetting.database-files")
def test_its_bytes_are_gone_and_others_are_there(forgotten: None) -> None:
    if connection.vendor == "postgresql":
        assert files_with(SECRET), "dead, but not overwritten"
    assert purge_all()
    assert files_with(SECRET) == []
    assert files_with(KEPT)
    assert not PurgeMark.objects.exists()


@pytest.mark.postgres
def test_the_planner_samples_no_column_of_what_people_wrote() -> None:
    """Nor one that is added later: the end of `0001_initial` shows how. SQLite samples no values."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
            " WHERE relname LIKE 'chatapp\\_%' AND relkind = 'r' AND attnum > 0 AND NOT attisdropped"
            " AND format_type(atttypid, NULL) IN ('text', 'jsonb', 'json', 'bytea', 'character varying')"
            " AND coalesce(attstattarget, -1) <> 0 AND (atttypmod = -1 OR atttypmod - 4 >= 100)"
        )
        assert cursor.fetchall() == []


def test_the_sweep_wakes_a_worker_for_it_once_a_minute(forgotten: None) -> None:
    now = clock.now()
    assert due_purges(now) == [], "more may come"
    [mark] = due_purges(now + timedelta(minutes=2))
    forgetting_tasks.purge(str(mark))
    assert files_with(SECRET) == []
    assert due_purges(now + timedelta(minutes=2)) == []


def test_the_command_does_so_at_once(forgotten: None) -> None:
    call_command("purge_deleted")
    assert files_with(SECRET) == []
    assert not PurgeMark.objects.exists()


@pytest.mark.mechanism("forgetting.database-files")
@pytest.mark.parametrize(
    "look", ["SELECT count(*) FROM chatapp_memoryentry", "SELECT count(*) FROM django_migrations"]
)
def test_while_somebody_looks_at_it_it_waits(forgotten: None, look: str) -> None:
    """At the table, or from a moment when it was there."""
    with closing(another_connection()) as other:
        other.execute("BEGIN" if connection.vendor == "sqlite" else "BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute(look)
        PurgeMark.objects.create()
        assert not purge_all()
        with pytest.raises(CommandError, match="in use"):
            call_command("purge_deleted")
        assert PurgeMark.objects.exists()
        other.execute("ROLLBACK")
    assert purge_all()
    assert files_with(SECRET) == []


def test_who_looked_while_it_was_being_deleted_is_waited_for(alice: User) -> None:
    """A backup that begins between the mark and its commit reads on what is deleted."""
    entry = MemoryEntry.objects.create(
        user=alice, text=f"The word is {SECRET}.", day=clock.now().date(), created_at=clock.now()
    )
    with closing(another_connection()) as other:
        with transaction.atomic():
            begin_forgetting(alice.pk)
            with transaction.atomic():
                entry.delete()
            other.execute(
                "BEGIN" if connection.vendor == "sqlite" else "BEGIN ISOLATION LEVEL REPEATABLE READ"
            )
            other.execute("SELECT count(*) FROM django_migrations").fetchall()
        assert not purge_all()
        assert PurgeMark.objects.exists()
        [[text]] = other.execute("SELECT text FROM chatapp_memoryentry").fetchall()
        assert SECRET in text
        other.execute("ROLLBACK")
    assert purge_all()
    assert files_with(SECRET) == []


@pytest.mark.parametrize(
    ("number", "horizon", "told"),
    [
        (99, 100, True),
        (100, 100, False),
        (101, 100, False),
        (2**32 - 1, 2**32 + 5, True),
        (7, 2**32 + 5, False),
    ],
)
def test_numbers_of_transactions_go_round(number: int, horizon: int, told: bool) -> None:
    assert is_below(number, horizon) is told


def another_connection() -> Any:
    parameters = connection.get_connection_params()
    if connection.vendor == "sqlite":
        return sqlite3.connect(parameters["database"], isolation_level=None)
    names = ("host", "port", "user", "password", "dbname")
    return psycopg.connect(**{name: parameters[name] for name in names if parameters.get(name)})


@pytest.mark.parametrize("what", ["conversation", "account"])
def test_whatever_deletes_leaves_a_mark(alice: User, alice_client: Client, what: str) -> None:
    made = alice_client.post(
        "/api/v1/conversations/import",
        {"messages": [{"role": "user", "content": f"The word is {SECRET}."}]},
        content_type="application/json",
    ).json()["id"]
    path = f"/api/v1/conversations/{made}" if what == "conversation" else "/api/v1/me"
    assert alice_client.delete(path).status_code == 204
    assert ForgetReceipt.objects.exists() is (what == "conversation")
    assert purge_all()
    assert files_with(SECRET) == []
