"""What does not change between turns is read once a process and kept while its edition is the same.

Triggers in the database give the configuration a new edition with every write of its tables, by whatever program, and
a user with every write of what is known of them alone: a cached value is never older than the edition that was read
before it. An edition is a random token, so that a transaction that is rolled back takes its edition with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from django.db import connection, connections

from chatapp.operations.lru_cache import LruCache
from chatapp.operations.statements import execute

T = TypeVar("T")

# A table that a kept value is read from and that is missing here changes unseen.
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
"""Values of so many users, of each kind, about."""


class Edition(NamedTuple):
    """What was read a moment ago: the edition of the configuration, and that of one user."""

    configuration: str | None
    user_id: UUID | None = None
    of_user: str = ""


_kept: dict[str, tuple[str, Any]] = {}
_kept_of_users = LruCache[tuple[UUID, str], tuple[str, Any]](8 * USERS_KEPT)
_thread = threading.local()


def keep(name: str, load: Callable[[], T]) -> T:
    """Return what `load` reads of the watched tables, from memory while they have not changed. The value must not be
    changed."""
    token = _known_edition()
    if token is None:
        return load()
    found = _kept.get(name)
    if found is None or found[0] != token:
        # Two threads may load it at once: either value is of this edition.
        found = _kept[name] = (token, load())
    value: T = found[1]
    return value


def keep_for(user_id: UUID, name: str, load: Callable[[], T]) -> T:
    """Return what `load` reads for one user of the watched tables, from memory while they have not changed."""
    token = _known_edition()
    return load() if token is None else _keep_for(user_id, name, token, load)


def keep_of_user(user_id: UUID, name: str, load: Callable[[], T]) -> T:
    """Return what `load` reads of the tables that are watched for each user, from memory while they have not
    changed."""
    return _keep_for(user_id, name, edition_of_user(user_id), load)


def _keep_for(user_id: UUID, name: str, token: str, load: Callable[[], T]) -> T:
    found = _kept_of_users.get((user_id, name))
    if found is None or found[0] != token:
        found = _kept_of_users.put((user_id, name), (token, load()))
    value: T = found[1]
    return value


def edition_of_user(user_id: UUID) -> str:
    """Return the tokens of a user; none where nothing was written since there are editions."""
    known: Edition | None = getattr(_thread, "edition", None)
    if known is not None and known.user_id == user_id:
        return known.of_user
    return str(execute(f"SELECT {user_edition('%s')}", user_id).fetchone()[0])


def configuration_edition() -> str:
    """Return what a statement selects so that `one_edition` need not ask."""
    return f"(SELECT {_tokens()} FROM chatapp_edition)"


def user_edition(user: str) -> str:
    """Return the same for a user, whose key is `user` in the statement."""
    return f"COALESCE((SELECT {_tokens()} FROM chatapp_useredition WHERE user_id = {user}), '')"


def _tokens() -> str:
    # SQLite has one writer at a time, and so one token.
    return "string_agg(token, '' ORDER BY token)" if connection.vendor == "postgresql" else "max(token)"


@contextmanager
def one_edition(edition: Edition) -> Iterator[None]:
    """Keep to the edition that was read a moment ago for all that is done inside, in one thread."""
    before = getattr(_thread, "edition", None)
    _thread.edition = edition
    try:
        yield
    finally:
        _thread.edition = before


def _known_edition() -> str | None:
    """Return the token; None where nothing was ever written."""
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
# Two transactions that write do not wait for each other, here and for a user: each leaves a token of its own, and the
# next one removes both. Who waited would hold what he has changed, for which the other one may wait.
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
    """Create the triggers. To be called after each migration, because one that rebuilds a table drops its triggers."""
    database = connections[using]
    existing = set(database.introspection.table_names())
    make = _on_postgres if database.vendor == "postgresql" else _on_sqlite
    with database.cursor() as cursor:
        # Each only where it was not migrated back to before there was one.
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
        # Once a statement, whatever the number of its rows. TRUNCATE calls no other trigger.
        changes = "INSERT OR UPDATE OR DELETE OR TRUNCATE"
        yield from _postgres_trigger("new_edition", table, changes, "STATEMENT", "chatapp_new_edition")


def _on_sqlite(tables: list[str]) -> Iterator[str]:
    upsert = _UPSERT.format(token=_SQLITE_TOKEN)
    for table in tables:
        for change in ("INSERT", "UPDATE", "DELETE"):
            name = f"new_edition_{table}_{change.lower()}"
            # What is there stays: a trigger whose text changes has to be dropped by a migration.
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
