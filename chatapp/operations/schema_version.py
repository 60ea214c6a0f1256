"""Is the database there, and has it the tables this program was written for?"""

from __future__ import annotations

from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor

CONNECT_TIMEOUT_S = 5


def ask_version() -> str:
    """The database's own version; the first thing to ask, for its error says what is wrong. Raises DatabaseError."""
    version = "sqlite_version()" if connection.vendor == "sqlite" else "version()"
    direct = connect_without_pool()
    try:
        with direct.cursor() as cursor:
            cursor.execute(f"SELECT {version}")
            (told,) = cursor.fetchone()
    finally:
        direct.close()
    return str(told).removeprefix("PostgreSQL ").split()[0]


def connect_without_pool() -> BaseDatabaseWrapper:
    """A pool tries for 20 seconds, and does not tell why it fails."""
    described = connection.settings_dict
    options = {name: value for name, value in described["OPTIONS"].items() if name != "pool"}
    if connection.vendor == "postgresql":
        options["connect_timeout"] = CONNECT_TIMEOUT_S
    return type(connections["default"])({**described, "OPTIONS": options}, alias="direct")


def has_unapplied_migrations() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
