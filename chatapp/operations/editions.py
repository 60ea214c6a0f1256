"""What does not change between turns is read once a process and kept while its edition is the same.

Triggers in the database give the configuration a new edition with every write of its tables, by whatever program: a
cached value is never older than the edition that was read before it. An edition is a random token, so that a
transaction that is rolled back takes its edition with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection, connections

T = TypeVar("T")

WATCHED = (
    "chatapp_modelconfig",
    "chatapp_agent",
    "chatapp_agent_mcp_servers",
    "chatapp_mcpserver",
    "chatapp_deploymenthook",
    "chatapp_groupretention",
    "chatapp_user_groups",
    "chatapp_groupaccess",
    "chatapp_groupaccess_models",
    "chatapp_groupaccess_agents",
    "chatapp_webhook",
    "chatapp_budget",
    "chatapp_storedsetting",
)
EDITION = "(SELECT token FROM chatapp_edition WHERE name = 'configuration')"
"""What a statement selects so that `one_edition` need not ask."""

_kept: dict[str, tuple[str, Any]] = {}
_thread = threading.local()


def keep(name: str, load: Callable[[], T]) -> T:
    """Return what `load` reads of the watched tables, from memory while they have not changed. Nobody may change it."""
    token = _known_edition()
    if token is None:
        return load()
    found = _kept.get(name)
    if found is None or found[0] != token:
        found = _kept[name] = (token, load())
    value: T = found[1]
    return value


@contextmanager
def one_edition(token: str | None) -> Iterator[None]:
    """Keep to the edition that was read a moment ago for all that is done inside, in one thread."""
    before = getattr(_thread, "token", None)
    _thread.token = token
    try:
        yield
    finally:
        _thread.token = before


def _known_edition() -> str | None:
    """Return the token; None where nothing was ever written."""
    token: str | None = getattr(_thread, "token", None)
    if token is None:
        with connections[connection.alias].cursor() as cursor:
            cursor.execute(f"SELECT {EDITION}")
            token = cursor.fetchone()[0]
    return token


# --- The triggers ---------------------------------------------------------------------------------------

_UPSERT = """
INSERT INTO chatapp_edition (name, token) VALUES ('configuration', {token})
ON CONFLICT (name) DO UPDATE SET token = excluded.token;
"""
_POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION chatapp_new_edition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN {upsert} RETURN NULL; END $$
"""


def install_triggers(using: str, **_: Any) -> None:
    """After each migration, because one that makes a table anew drops its triggers."""
    database = connections[using]
    existing = set(database.introspection.table_names())
    if "chatapp_edition" not in existing:  # migrated back to before there was one
        return
    with database.cursor() as cursor:
        for statement in _statements(database.vendor, [table for table in WATCHED if table in existing]):
            cursor.execute(statement)


def _statements(vendor: str, tables: list[str]) -> Iterator[str]:
    if vendor == "postgresql":
        token = "md5(random()::text || clock_timestamp()::text)"
        yield _POSTGRES_FUNCTION.format(upsert=_UPSERT.format(token=token))
        for table in tables:
            yield f"DROP TRIGGER IF EXISTS new_edition ON {table}"
            yield (
                f"CREATE TRIGGER new_edition AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION chatapp_new_edition()"
            )
        return
    upsert = _UPSERT.format(token="hex(randomblob(16))")
    for table in tables:
        for change in ("INSERT", "UPDATE", "DELETE"):
            name = f"new_edition_{table}_{change.lower()}"
            yield f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {change} ON {table} BEGIN {upsert} END"
