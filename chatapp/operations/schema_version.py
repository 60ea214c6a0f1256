"""Says whether the database answers, and has the tables that this program needs."""

from __future__ import annotations

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

CONNECT_TIMEOUT_S = 5


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


def has_unapplied_migrations() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
