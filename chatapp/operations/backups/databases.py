"""Makes consistent copies of the database while others write, and restores the database from such a copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from chatapp.operations.backups.archive import DATABASE, ArchiveWriter, BackupProblem, Manifest, make_draft
from chatapp.operations.database.sqlite3.base import close_kept

Migrations = Sequence[tuple[str, str]]
APPLIED = "SELECT app, name FROM django_migrations ORDER BY id"
SQLITE_NAME = "palimpsest.sqlite3"
# A tar has the length of a file before its content, so a table, whose length is unknown, is written in parts.
PART_BYTES = 8 * 2**20
# A process of the service that still runs holds locks. Fail instead of waiting for it.
LOCK_TIMEOUT = "5s"


@contextmanager
def open_snapshot(beside: Path) -> Iterator[Snapshot]:
    """Yield a snapshot of the database. SQLite's is a file next to `beside`, as large as the database."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # PostgreSQL requires this to be the first statement. All later reads see the same moment.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresSnapshot(cursor)
        return
    with make_draft(beside, ".database") as copy:
        with connection.cursor() as cursor:
            # One read transaction: writers continue, and the copy contains nothing that was deleted.
            cursor.execute("VACUUM INTO %s", [str(copy)])
        yield SqliteSnapshot(copy)


# --- SQLite ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SqliteSnapshot:
    copy: Path

    @property
    def migrations(self) -> list[tuple[str, str]]:
        with closing(sqlite3.connect(self.copy)) as database:
            return database.execute(APPLIED).fetchall()

    @property
    def tables(self) -> dict[str, list[str]]:
        return {}

    def write(self, archive: ArchiveWriter) -> None:
        archive.add_file(f"{DATABASE}/{SQLITE_NAME}", self.copy)


def _restore_sqlite(folder: Path) -> None:
    """Replace the database file, which no process may have open."""
    restored, target = folder / SQLITE_NAME, Path(connection.settings_dict["NAME"])
    try:
        with closing(sqlite3.connect(restored)) as database:
            [[verdict]] = database.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        verdict = str(error)
    if verdict != "ok":
        raise BackupProblem(f"The database in the backup is damaged ({verdict}).")
    connection.close()
    close_kept()  # closed later, a connection would remove the log of the new file
    # Move it next to the target first, because a file on another disk cannot replace the target atomically.
    draft = target.with_name(f".{target.name}.restored")
    shutil.move(restored, draft)
    # SQLite would apply the log of the old database to the restored one.
    for ending in ("-wal", "-shm", "-journal"):
        target.with_name(f"{target.name}{ending}").unlink(missing_ok=True)
    os.replace(draft, target)


# --- PostgreSQL --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostgresSnapshot:
    """Rows in COPY format, which needs no PostgreSQL tools and is readable by all versions."""

    cursor: Any

    @property
    def migrations(self) -> list[tuple[str, str]]:
        self.cursor.execute(APPLIED)
        return list(self.cursor.fetchall())

    @property
    def tables(self) -> dict[str, list[str]]:
        return {
            table: [
                column.name for column in connection.introspection.get_table_description(self.cursor, table)
            ]
            for table in _our_tables(self.cursor)
            if table != "django_migrations"
        }

    def write(self, archive: ArchiveWriter) -> None:
        for table, columns in self.tables.items():
            for number, part in enumerate(self._parts(table, columns)):
                # Pad with zeros, so that sorted names are in the order of the rows.
                archive.add_bytes(f"{DATABASE}/{table}/{number:08}", part)

    def _parts(self, table: str, columns: Sequence[str]) -> Iterator[bytes]:
        waiting = bytearray()
        with self.cursor.copy(f"COPY {_columns_of(table, columns)} TO STDOUT") as rows:
            for row in rows:
                waiting += row
                if len(waiting) >= PART_BYTES:
                    yield bytes(waiting)
                    waiting.clear()
        if waiting:
            yield bytes(waiting)


Snapshot = SqliteSnapshot | PostgresSnapshot
"""The database at one moment. Its schema may be older or newer than this program, as rows are copied unchanged."""


def _our_tables(cursor: Any) -> list[str]:
    """Return the tables that our migrations created, without those of other programs in the database.

    If this version does not know some migrations of an app, return all tables that begin with the app's label.
    """
    loader = MigrationLoader(connection, replace_migrations=False)
    applied = set(loader.applied_migrations or ())
    models = loader.project_state(sorted(_known(applied, loader))).apps.get_models(include_auto_created=True)
    made = {MigrationRecorder.Migration._meta.db_table, *(model._meta.db_table for model in models)}
    unknown = {label for label, name in applied if (label, name) not in loader.graph.nodes}
    newer = tuple(f"{app.label}_" for app in apps.get_app_configs() if app.label in unknown)
    names = connection.introspection.table_names(cursor)
    return sorted(name for name in names if name in made or name.startswith(newer))


def _known(applied: Iterable[tuple[str, str]], loader: MigrationLoader) -> set[tuple[str, str]]:
    """Return the migrations that this program knows, without squashed ones, which older backups do not have."""
    nodes = loader.graph.nodes
    return {node for node in applied if node in nodes and not nodes[node].replaces}


def _columns_of(table: str, columns: Sequence[str]) -> str:
    quoted = ", ".join(connection.ops.quote_name(column) for column in columns)
    return f"{connection.ops.quote_name(table)} ({quoted})"


def _restore_postgres(folder: Path, manifest: Manifest) -> None:
    """Create the tables in the schema of the backup, and fill them in one transaction."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        if former := _our_tables(cursor):
            cursor.execute(f"DROP TABLE {_listed(former)} CASCADE")
    _migrate_to(manifest.migrations)
    with transaction.atomic(), connection.cursor() as cursor:
        if unknown := set(manifest.tables) - set(_our_tables(cursor)):
            raise BackupProblem(
                f"The backup has tables that its schema does not: {', '.join(sorted(unknown))}."
            )
        # All at once, because PostgreSQL does not truncate a table that another one references.
        cursor.execute(f"TRUNCATE {_listed(manifest.tables)}")  # rows inserted by migrations
        for table, columns in manifest.tables.items():
            with cursor.copy(f"COPY {_columns_of(table, columns)} FROM STDIN") as rows:
                for part in sorted((folder / table).glob("*")):
                    rows.write(part.read_bytes())
        # COPY inserts keys, but does not advance the sequences.
        _set_sequences(cursor, manifest.tables)


def _listed(tables: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(connection.ops.quote_name(table) for table in tables)


def _migrate_to(applied: Migrations) -> None:
    """Migrate an empty database to exactly these migrations."""
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    graph = executor.loader.graph
    wanted = _known(applied, executor.loader)
    # Pass only the last ones of each app. Django would migrate back to one that is already applied.
    executor.migrate(
        [
            node
            for node in wanted
            if not any(
                child.key in wanted and child.key[0] == node[0] for child in graph.node_map[node].children
            )
        ]
    )


def _set_sequences(cursor: Any, tables: Mapping[str, Any]) -> None:
    """Advance the sequences past the restored keys."""
    for table in tables:
        for found in connection.introspection.get_sequences(cursor, table):
            column = connection.ops.quote_name(found["column"])
            cursor.execute(
                # The third argument says whether the number is used. In an empty table, 1 is the next one.
                f"SELECT setval(%s, coalesce(max({column}), 1), max({column}) IS NOT NULL)"
                f" FROM {connection.ops.quote_name(table)}",
                [found["name"]],
            )


# --- Both databases ----------------------------------------------------------------------------------


def check_database(manifest: Manifest) -> None:
    """Raise BackupProblem if the backup is of another kind of database, or of a newer version."""
    if manifest.database != connection.vendor:
        raise BackupProblem(
            f"The backup is of {manifest.database}, and DATABASE_URL points to {connection.vendor}:"
            " it is restored into the kind of database that it was made of."
        )
    known = MigrationExecutor(connection).loader.disk_migrations or {}
    labels = {app.label for app in apps.get_app_configs()}
    newer = [
        f"{app}.{name}" for app, name in manifest.migrations if app in labels and (app, name) not in known
    ]
    if newer:
        raise BackupProblem(
            f"The backup was made by a newer version, with {newer[0]}: install that one first."
        )


def has_accounts() -> bool:
    with connection.cursor() as cursor:
        if "chatapp_user" not in connection.introspection.table_names(cursor):
            return False
        cursor.execute("SELECT count(*) FROM chatapp_user")
        return bool(cursor.fetchone()[0])


def is_of_another_program() -> bool:
    """Return whether another program keeps tables here: with Django's migrations, or in any SQLite file."""
    with connection.cursor() as cursor:
        names = set(connection.introspection.table_names(cursor))
        if "chatapp_user" in names:
            return False
        if connection.vendor == "sqlite":
            return bool(names)
        # An interrupted restore leaves only our own tables.
        return "django_migrations" in names and not names.issubset(_our_tables(cursor))


def restore_database(folder: Path, manifest: Manifest) -> None:
    """Replace the database, which must have no accounts, with that of an unpacked backup. Raise BackupProblem."""
    try:
        if manifest.database == "sqlite":
            _restore_sqlite(folder / DATABASE)
        else:
            _restore_postgres(folder / DATABASE, manifest)
    except DatabaseError as error:
        raise BackupProblem(
            "The database could not be restored; stop all processes of the service and try again."
            f" ({str(error).strip()})"
        ) from None
