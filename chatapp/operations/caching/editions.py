"""A cache of values that seldom change. Each process keeps a value while its edition is the same.

Database triggers set a new edition of the configuration on each write to its tables, by any program, and a new edition
of a user on each write to that user's own data. So a cached value is never older than the edition that was read before
it. An edition is a random token, so that a rollback also restores the former edition.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import connection, connections

from chatapp.operations.caching.lru_cache import LruCache
from chatapp.operations.database.statements import execute

T = TypeVar("T")

# Changes of a table that is missing here are not noticed, and cached values from it become stale.
WATCHED = (
    "chatapp_modelconfig",
    "chatapp_agent",
    "chatapp_agent_mcp_servers",
    "chatapp_mcpserver",
    "chatapp_deploymenthook",
    "chatapp_groupretention",
    "auth_group",
    "chatapp_user_groups",
    "chatapp_groupaccess",
    "chatapp_groupaccess_models",
    "chatapp_groupaccess_agents",
    "chatapp_webhook",
    "chatapp_budget",
    "chatapp_storedsetting",
)
WATCHED_OF_USERS = (
    ("chatapp_memorypause", ("INSERT", "UPDATE", "DELETE")),
    ("chatapp_profile", ("INSERT", "UPDATE", "DELETE")),
    ("chatapp_tombstone", ("INSERT", "UPDATE", "DELETE")),
    ("chatapp_storedclaim", ("UPDATE OF superseded_by_id", "DELETE")),
)
USERS_KEPT = 2_000
"""The cache has room for the values of about this many users."""


class Edition(NamedTuple):
    """The edition of the configuration, and that of one user, as just read."""

    configuration: str | None
    user_id: UUID | None = None
    of_user: str = ""


_kept = LruCache[tuple[UUID | None, str], tuple[str, Any]](8 * USERS_KEPT)
_thread = threading.local()


def cached(name: str, load: Callable[[], T]) -> T:
    """Return what `load` reads from the watched tables, cached until they change. Do not modify the value."""
    return cached_for_user(None, name, load)


def cached_for_user(user_id: UUID | None, name: str, load: Callable[[], T]) -> T:
    """Return what `load` reads for one user from the watched tables, cached until they change. None: for everybody."""
    token = _known_edition()
    return load() if token is None else _keep_for(user_id, name, token, load)


def cached_from_user_tables(user_id: UUID, name: str, load: Callable[[], T]) -> T:
    """Return what `load` reads from the tables that are watched for each user, cached until they change."""
    return _keep_for(user_id, name, edition_of_user(user_id), load)


def _keep_for(user_id: UUID | None, name: str, token: str, load: Callable[[], T]) -> T:
    found = _kept.get((user_id, name))
    if found is None or found[0] != token:
        # If two threads load it at once, both values belong to this edition.
        found = _kept.put((user_id, name), (token, load()))
    value: T = found[1]
    return value


def edition_of_user(user_id: UUID) -> str:
    """Return the tokens of a user; empty if none of the user's watched tables was ever written."""
    known: Edition | None = getattr(_thread, "edition", None)
    if known is not None and known.user_id == user_id:
        return known.of_user
    return str(execute(f"SELECT {user_edition('%s')}", user_id).fetchone()[0])


def configuration_edition() -> str:
    """Return SQL to read the configuration's edition within another statement, for `one_edition`."""
    return f"(SELECT {_tokens()} FROM chatapp_edition)"


def user_edition(user: str) -> str:
    """Return the same SQL for a user's edition. `user` is the SQL of the user's key."""
    return f"COALESCE((SELECT {_tokens()} FROM chatapp_useredition WHERE user_id = {user}), '')"


def _tokens() -> str:
    # SQLite has one writer at a time, and thus one token.
    return "string_agg(token, '' ORDER BY token)" if connection.vendor == "postgresql" else "max(token)"


@contextmanager
def one_edition(edition: Edition) -> Iterator[None]:
    """Use this edition for everything inside the block, in one thread, instead of reading it again."""
    before = getattr(_thread, "edition", None)
    _thread.edition = edition
    try:
        yield
    finally:
        _thread.edition = before


def _known_edition() -> str | None:
    """Return the token; None if no watched table was ever written."""
    known: Edition | None = getattr(_thread, "edition", None)
    if known is not None:
        return known.configuration
    token: str | None = execute(f"SELECT {configuration_edition()}").fetchone()[0]
    return token


# --- The triggers ---------------------------------------------------------------------------------------

_UPSERT = """
INSERT INTO chatapp_edition (name, token) VALUES ('configuration', {token})
ON CONFLICT (name) DO UPDATE SET token = excluded.token;
"""
# Concurrent writers do not wait for each other, here and for a user: each adds its own token, and the next write
# removes both. A writer that waited would keep its own locks, for which the other one may wait.
_POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION chatapp_new_edition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE new text := {token};
BEGIN
DELETE FROM chatapp_edition WHERE name IN (SELECT name FROM chatapp_edition FOR UPDATE SKIP LOCKED);
INSERT INTO chatapp_edition (name, token) VALUES (left(new, 20), new);
RETURN NULL; END $$
"""


_NEW_USER_EDITION = """
DELETE FROM chatapp_useredition WHERE {gone};
INSERT INTO chatapp_useredition (user_id, token) VALUES ({user}, {token});
"""
_POSTGRES_USER_FUNCTIONS = """
CREATE OR REPLACE FUNCTION chatapp_new_user_edition() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE whose uuid := COALESCE(NEW.user_id, OLD.user_id);
BEGIN {new} RETURN NULL; END $$;
CREATE OR REPLACE FUNCTION chatapp_no_user_edition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN DELETE FROM chatapp_useredition WHERE user_id = OLD.id; RETURN NULL; END $$
"""
_UNLOCKED = """id IN (SELECT id FROM chatapp_useredition WHERE user_id = whose FOR UPDATE SKIP LOCKED)"""
_POSTGRES_TOKEN = "md5(random()::text || clock_timestamp()::text)"
_SQLITE_TOKEN = "hex(randomblob(16))"


def install_triggers(using: str, **_: Any) -> None:
    """Create the triggers. Call this after each migration, because one that rebuilds a table drops its triggers."""
    database = connections[using]
    existing = set(database.introspection.table_names())
    make = _on_postgres if database.vendor == "postgresql" else _on_sqlite
    with database.cursor() as cursor:
        # The tables do not exist if the database was migrated back to an older schema.
        if "chatapp_edition" in existing:
            for statement in make([table for table in WATCHED if table in existing]):
                cursor.execute(statement)
        if "chatapp_useredition" in existing:
            make_of_users = _of_users_on_postgres if database.vendor == "postgresql" else _of_users_on_sqlite
            for statement in make_of_users():
                cursor.execute(statement)


def _on_postgres(tables: list[str]) -> Iterator[str]:
    yield _POSTGRES_FUNCTION.format(token=_POSTGRES_TOKEN)
    for table in tables:
        # Fire once for a statement, whatever its number of rows. TRUNCATE fires no other trigger.
        changes = "INSERT OR UPDATE OR DELETE OR TRUNCATE"
        yield from _postgres_trigger("new_edition", table, changes, "STATEMENT", "chatapp_new_edition")


def _on_sqlite(tables: list[str]) -> Iterator[str]:
    upsert = _UPSERT.format(token=_SQLITE_TOKEN)
    for table in tables:
        for change in ("INSERT", "UPDATE", "DELETE"):
            name = f"new_edition_{table}_{change.lower()}"
            # Existing triggers stay, so a migration must drop a trigger whose text changes.
            yield f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {change} ON {table} BEGIN {upsert} END"


def _of_users_on_postgres() -> Iterator[str]:
    new = _NEW_USER_EDITION.format(gone=_UNLOCKED, user="whose", token=_POSTGRES_TOKEN)
    yield _POSTGRES_USER_FUNCTIONS.format(new=new)
    for table, changes in WATCHED_OF_USERS:
        events = " OR ".join(changes)
        yield from _postgres_trigger("new_user_edition", table, events, "ROW", "chatapp_new_user_edition")
    yield from _postgres_trigger(
        "no_user_edition", "chatapp_user", "DELETE", "ROW", "chatapp_no_user_edition"
    )


def _postgres_trigger(name: str, table: str, events: str, each: str, function: str) -> Iterator[str]:
    # PostgreSQL before 14 cannot replace a trigger.
    yield f"DROP TRIGGER IF EXISTS {name} ON {table}"
    yield f"CREATE TRIGGER {name} AFTER {events} ON {table} FOR EACH {each} EXECUTE FUNCTION {function}()"


def _of_users_on_sqlite() -> Iterator[str]:
    for table, changes in WATCHED_OF_USERS:
        for change in changes:
            kind = change.split()[0].lower()
            user = "OLD.user_id" if kind == "delete" else "NEW.user_id"
            new = _NEW_USER_EDITION.format(gone=f"user_id = {user}", user=user, token=_SQLITE_TOKEN)
            name = f"new_user_edition_{table}_{kind}"
            yield f"CREATE TRIGGER IF NOT EXISTS {name} AFTER {change} ON {table} BEGIN {new} END"
    gone = "DELETE FROM chatapp_useredition WHERE user_id = OLD.id;"
    yield f"CREATE TRIGGER IF NOT EXISTS no_user_edition AFTER DELETE ON chatapp_user BEGIN {gone} END"
