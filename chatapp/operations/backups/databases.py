"""Copies of the database as it is at one moment, while others write; and a database made of such a copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from django.apps import apps
from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from chatapp.operations.backups.archive import DATABASE, ArchiveWriter, BackupProblem, Manifest, make_draft
from chatapp.operations.sqlite3.base import close_kept

Migrations = Sequence[tuple[str, str]]
APPLIED = "SELECT app, name FROM django_migrations ORDER BY id"
SQLITE_NAME = "palimpsest.sqlite3"
# A tar has the length of a file before its content: a table, whose length is not known, is written in parts.
PART_BYTES = 8 * 2**20
# A process of the service that still runs holds locks: it is told of instead of waited for.
LOCK_TIMEOUT = "5s"


class Snapshot(Protocol):
    """The database at one moment. Programs of an older or newer schema are no problem: it is read as it is."""

    @property
    def migrations(self) -> list[tuple[str, str]]: ...

    @property
    def tables(self) -> dict[str, list[str]]: ...

    def write(self, archive: ArchiveWriter) -> None: ...


@contextmanager
def open_snapshot(beside: Path) -> Iterator[Snapshot]:
    """Yield the database as it is now. SQLite's is a file next to `beside`, as large as the database."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            # The first statement, as PostgreSQL asks: all that is read afterwards is of one moment.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresSnapshot(cursor)
        return
    with make_draft(beside, ".database") as copy:
        with connection.cursor() as cursor:
            # One read transaction: writers go on, and nothing that was deleted is in the copy.
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
    """Put the file in the place of the database, which nobody has open."""
    restored, target = folder / SQLITE_NAME, Path(connection.settings_dict["NAME"])
    try:
        with closing(sqlite3.connect(restored)) as database:
            [[verdict]] = database.execute("PRAGMA quick_check(1)").fetchall()
    except sqlite3.DatabaseError as error:
        verdict = str(error)
    if verdict != "ok":
        raise BackupProblem(f"The database in the backup is damaged ({verdict}).")
    connection.close()
    close_kept()  # closed later, one would remove the log of the new file
    # First beside the target: from another disk, where the backup may lie, no file is replaced at once.
    draft = target.with_name(f".{target.name}.restored")
    shutil.move(restored, draft)
    # SQLite would apply the log of the former database to the restored one.
    for ending in ("-wal", "-shm", "-journal"):
        target.with_name(f"{target.name}{ending}").unlink(missing_ok=True)
    os.replace(draft, target)


# --- PostgreSQL --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostgresSnapshot:
    """Rows as COPY writes them, which needs no program of PostgreSQL's and is read by any version of it."""

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
                # With zeros before it, so that sorted names are in the order of the rows.
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


def _our_tables(cursor: Any) -> list[str]:
    """Return the tables that our migrations have made here, without those of other programs in the database.

    Of an application of ours with migrations that this version does not know, those that begin with its label.
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
    """Return those that this program knows, without squashed ones: an older backup has some that these replace."""
    nodes = loader.graph.nodes
    return {node for node in applied if node in nodes and not nodes[node].replaces}


def _columns_of(table: str, columns: Sequence[str]) -> str:
    quoted = ", ".join(connection.ops.quote_name(column) for column in columns)
    return f"{connection.ops.quote_name(table)} ({quoted})"


def _restore_postgres(folder: Path, manifest: Manifest) -> None:
    """Make the tables as they were when the backup was made, and fill them in one transaction."""
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
        # All at once: PostgreSQL truncates no table that another refers to.
        cursor.execute(f"TRUNCATE {_listed(manifest.tables)}")  # what migrations filled in
        for table, columns in manifest.tables.items():
            with cursor.copy(f"COPY {_columns_of(table, columns)} FROM STDIN") as rows:
                for part in sorted((folder / table).glob("*")):
                    rows.write(part.read_bytes())
        # COPY brings the keys along and leaves the sequences where they are.
        _set_sequences(cursor, manifest.tables)


def _listed(tables: Mapping[str, Any] | Sequence[str]) -> str:
    return ", ".join(connection.ops.quote_name(table) for table in tables)


def _migrate_to(applied: Migrations) -> None:
    """Bring an empty database to the schema that has these migrations, and no other."""
    executor = MigrationExecutor(connection)
    executor.loader = MigrationLoader(connection, replace_migrations=False)
    graph = executor.loader.graph
    wanted = _known(applied, executor.loader)
    # The last ones of each app alone: Django would migrate back to one that is applied by then.
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
    """Let the numbers of new rows go on after the restored ones."""
    for table in tables:
        for found in connection.introspection.get_sequences(cursor, table):
            column = connection.ops.quote_name(found["column"])
            cursor.execute(
                # The third value says whether the number was given already: of an empty table 1 is the next.
                f"SELECT setval(%s, coalesce(max({column}), 1), max({column}) IS NOT NULL)"
                f" FROM {connection.ops.quote_name(table)}",
                [found["name"]],
            )


# --- both --------------------------------------------------------------------------------------------


def check_database(manifest: Manifest) -> None:
    """Raise BackupProblem where the backup is of another kind of database, or of a newer program."""
    if manifest.database != connection.vendor:
        raise BackupProblem(
            f"The backup is of {manifest.database}, and DATABASE_URL leads to {connection.vendor}:"
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
    """Return whether another program keeps its tables here, with migrations of Django or in a file of SQLite's."""
    with connection.cursor() as cursor:
        names = set(connection.introspection.table_names(cursor))
        if "chatapp_user" in names:
            return False
        if connection.vendor == "sqlite":
            return bool(names)
        # A restore that was interrupted leaves tables, too, but ours alone.
        return "django_migrations" in names and not names.issubset(_our_tables(cursor))


def restore_database(folder: Path, manifest: Manifest) -> None:
    """Replace the database, which has no accounts, by that of an unpacked backup. Raise BackupProblem."""
    try:
        if manifest.database == "sqlite":
            _restore_sqlite(folder / DATABASE)
        else:
            _restore_postgres(folder / DATABASE, manifest)
    except (OperationalError, IntegrityError, DatabaseError) as error:
        raise BackupProblem(
            "The database could not be restored; stop all processes of the service and try again."
            f" ({str(error).strip()})"
        ) from None
