"""Says whether the database answers and has the tables this program needs; lets one process at a time make them."""

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
"""An arbitrary number, which other locks of the same database should not have."""


def ask_version() -> str:
    """Return the database's version. Ask it first: its error says what is wrong. Raise DatabaseError."""
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
    """Return a connection outside the pool, which tries for 20 seconds and does not say why it fails."""
    described = connection.settings_dict
    options = {name: value for name, value in described["OPTIONS"].items() if name != "pool"}
    if connection.vendor == "postgresql":
        options["connect_timeout"] = CONNECT_TIMEOUT_S
    return type(connections["default"])({**described, "OPTIONS": options}, alias="direct")


def compare_schema() -> Literal["same", "older", "newer"]:
    """Return how the database's schema compares with the one that this program has migrations for."""
    executor = MigrationExecutor(connection)
    known = executor.loader.disk_migrations or {}
    # Those of libraries do not count: a database keeps the rows of one that was left out.
    if any(node[0] == OURS and node not in known for node in executor.loader.applied_migrations):
        return "newer"
    return "older" if executor.migration_plan(executor.loader.graph.leaf_nodes()) else "same"


def database_made_at() -> datetime:
    """Return when the database got its first migration.

    A file that is older was written for another database. Who starts the service once with a wrong DATABASE_URL, or
    tries PostgreSQL on the data folder of an SQLite deployment, must not lose what no row names there.
    """
    made_at: datetime = MigrationRecorder(connection).migration_qs.aggregate(at=Min("applied"))["at"]
    return made_at


@contextmanager
def one_process_at_a_time() -> Iterator[None]:
    """Wait until no other process is in this block with the same PostgreSQL database."""
    if connection.vendor != "postgresql":
        yield
        return
    direct = connect_without_pool()
    try:
        # A lock of a session would stay behind in PgBouncer, which gives each transaction another one.
        direct.set_autocommit(False)
        with direct.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [MIGRATING])
        yield
    finally:
        direct.close()
