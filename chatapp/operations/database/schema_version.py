"""Checks that the database responds and has the schema of this program. Lets one process at a time migrate it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Min

OURS = "chatapp"
NEWER = "The database has a newer schema than this program: install the newer version again."
OLDER = "The database has an older schema than this program: run `manage.py migrate` first."
CONNECT_TIMEOUT_S = 5
MIGRATING = 7_369_640_213
"""The key of the advisory lock: an arbitrary number that no other lock of this database should use."""


def ask_version() -> str:
    """Return the database's version. Call this first, because its error contains the cause. Raise DatabaseError."""
    version = "sqlite_version()" if connection.vendor == "sqlite" else "version()"
    direct = connect_without_pool()
    try:
        with direct.cursor() as cursor:
            cursor.execute(f"SELECT {version}")
            (answer,) = cursor.fetchone()
    finally:
        direct.close()
    return str(answer).removeprefix("PostgreSQL ").split()[0]


def connect_without_pool() -> BaseDatabaseWrapper:
    """Return a connection outside the pool, which would retry for seconds and not report the cause of a failure."""
    described = connection.settings_dict
    options = {name: value for name, value in described["OPTIONS"].items() if name != "pool"}
    if connection.vendor == "postgresql":
        options["connect_timeout"] = CONNECT_TIMEOUT_S
    return type(connections["default"])({**described, "OPTIONS": options}, alias="direct")


def compare_schema() -> Literal["same", "older", "newer"]:
    """Return how the database's schema compares with the migrations of this program."""
    executor = MigrationExecutor(connection)
    known = executor.loader.disk_migrations or {}
    # Ignore libraries, because a database keeps the migrations of a library that was removed.
    if any(node[0] == OURS and node not in known for node in executor.loader.applied_migrations):
        return "newer"
    return "older" if executor.migration_plan(executor.loader.graph.leaf_nodes()) else "same"


def database_made_at() -> datetime:
    """Return when the first migration of the database was applied.

    Older files belong to another database and must not be deleted as unused: DATABASE_URL may be wrong for one start,
    or PostgreSQL may be tried with the data folder of an SQLite deployment.
    """
    made_at: datetime = MigrationRecorder(connection).migration_qs.aggregate(at=Min("applied"))["at"]
    return made_at


@contextmanager
def one_process_at_a_time() -> Iterator[None]:
    """Wait until no other process runs this block with the same PostgreSQL database. Do not wait on SQLite."""
    if connection.vendor != "postgresql":
        yield
        return
    direct = connect_without_pool()
    try:
        # Use a lock of the transaction. A session lock would stay in PgBouncer, which switches connections.
        direct.set_autocommit(False)
        with direct.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATING])
        yield
    finally:
        direct.close()
