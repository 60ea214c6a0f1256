"""SQL statements of the hot path, built once. All run in the caller's transaction.

Django builds the SQL each time, which takes ten times as long as executing the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeAlias, cast
from uuid import UUID

from django.db import connection, connections, models
from django.db.backends.sqlite3.base import FORMAT_QMARK_REGEX, SQLiteCursorWrapper
from django.db.backends.utils import CursorWrapper
from django.db.models import Field, Model

_Field: TypeAlias = "Field[Any, Any]"
_Reader = Callable[[Sequence[Any]], Model]
INSERTED_AT_ONCE = 100


def execute(sql: str, *values: int | str | bytes | UUID | datetime) -> CursorWrapper:
    """Execute the statement and return its cursor."""
    return execute_stored(sql, [as_stored(value) for value in values])


def execute_stored(sql: str, values: Sequence[Any]) -> CursorWrapper:
    """Execute the statement, with values in the format of the database, and return its cursor."""
    cursor = _cursor(connections[connection.alias])  # `connection` is resolved on each use
    cursor.execute(sql, values)
    return cursor


@cache
def _vendor() -> str:
    """Return the kind of database, cached because `connection` is resolved for the thread on each use."""
    return connection.vendor


def locked(sql: str) -> str:
    """Return the SELECT on one table so that it locks its rows until the end of the transaction. On SQLite, return it
    unchanged, because a writer locks the whole database."""
    return f"{sql} FOR UPDATE" if connection.features.has_select_for_update else sql


def placeholders(count: int) -> str:
    """Return the list of placeholders after `IN` for `count` values."""
    return f"({', '.join(['%s'] * count)})"


def _cursor(database: Any) -> CursorWrapper:
    """Return a cursor for repeated statements, or Django's if it logs queries or must not prepare statements.

    On SQLite, placeholders are converted only once. PostgreSQL plans a statement once for each connection. Django puts
    values into the text, so that each call is planned, which takes longer than most of ours take to run.
    """
    if database.queries_logged:
        return cast(CursorWrapper, database.cursor())
    database.ensure_connection()
    if database.vendor == "sqlite":
        return cast(CursorWrapper, database.make_cursor(database.connection.cursor(factory=_SameStatements)))
    if not database.settings_dict["OPTIONS"].get("prepare_threshold"):
        return cast(CursorWrapper, database.cursor())
    return cast(CursorWrapper, database.make_cursor(database.connection.preparing_cursor()))


class _SameStatements(SQLiteCursorWrapper):
    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        return _with_question_marks(query)


@lru_cache(maxsize=512)
def _with_question_marks(query: str) -> str:
    return FORMAT_QMARK_REGEX.sub("?", query).replace("%%", "%")


def as_stored(value: int | str | bytes | UUID | datetime) -> Any:
    """Return the value as a parameter. SQLite has no types for UUIDs and datetimes."""
    if not isinstance(value, (UUID, datetime)) or _vendor() != "sqlite":
        return value
    return value.hex if isinstance(value, UUID) else _without_zone(value)


def as_key(value: str | UUID) -> UUID:
    """Return a key as a UUID: SQLite reads it as text."""
    return value if isinstance(value, UUID) else UUID(value)


@lru_cache
def columns_of(model: type[Model], table: str) -> str:
    """Return all columns of a table for `read_models`. `table` is its name in the statement."""
    return ", ".join(f"{table}.{_column(field)}" for field in model._meta.concrete_fields)


def read_models(
    models: Sequence[type[Model]], sql: str, *values: int | str | UUID | datetime
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement that selects `columns_of` each model: an instance of each model, or None if its key
    is NULL, and then other selected columns as raw values."""
    readers = [(len(model._meta.concrete_fields), _reader(model, _vendor())) for model in models]
    for row in execute(sql, *values).fetchall():
        start, found = 0, []
        for count, read in readers:
            found.append(read(row[start : start + count]))
            start += count
        yield (*found, *row[start:])


@lru_cache
def _reader(model: type[Model], vendor: str) -> _Reader:
    """Return a function that builds an instance from the columns of a row, as the ORM does."""
    database = connections[connection.alias]
    fields = model._meta.concrete_fields
    names = [field.attname for field in fields]
    key = names.index(model._meta.pk.attname) if model._meta.pk else 0
    converting = []
    for place, field in enumerate(fields):
        column = field.get_col(model._meta.db_table)
        converters = [*database.ops.get_db_converters(column), *field.get_db_converters(database)]
        converting += [(place, convert, column) for convert in converters]

    def read(row: Sequence[Any]) -> Any:
        if row[key] is None:
            return None
        values, this = list(row), connections[connection.alias]
        for place, convert, column in converting:
            values[place] = convert(values[place], column, this)
        return model.from_db(this.alias, names, values)

    return read


Prepared: TypeAlias = Sequence[tuple[str, Sequence[Sequence[Any]]]]
"""Statements with the rows of values to execute them with, in the format of the database."""


def run_prepared(statements: Prepared) -> None:
    with _cursor(connections[connection.alias]) as cursor:
        for sql, rows in statements:
            if len(rows) == 1:
                cursor.execute(sql, rows[0])
            else:
                cursor.executemany(sql, rows)


def insert_rows(rows: Sequence[Model], *, is_dated: bool = False, on_conflict: str = "") -> None:
    """Insert rows of one table, as `bulk_create` does, but do not set generated keys. `is_dated` keeps times that
    `auto_now_add` would overwrite. `on_conflict` is the SQL after ON CONFLICT. Without it, an existing row
    raises IntegrityError."""
    run_prepared(prepare_insert(rows, is_dated=is_dated, on_conflict=on_conflict))
    for row in rows:
        # As after `save`, so that a later save updates the row.
        row._state.adding = False


def prepare_insert(rows: Sequence[Model], *, is_dated: bool = False, on_conflict: str = "") -> Prepared:
    """Return the statements of `insert_rows`, with all values computed, to be run later in a transaction."""
    statements = []
    for start in range(0, len(rows), INSERTED_AT_ONCE):
        some = rows[start : start + INSERTED_AT_ONCE]
        readers, sql = _insert(type(rows[0]), len(some), on_conflict, _vendor())
        statements.append((sql, [[read(row, not is_dated) for row in some for read in readers]]))
    return statements


def update_row(row: Model, *names: str) -> None:
    """Update as `save(update_fields=names)` does, without signals."""
    update_rows([row], *names)


def update_rows(rows: Sequence[Model], *names: str) -> None:
    """Update rows of one model with one statement, without signals. `bulk_update` takes ten times as long."""
    run_prepared(prepare_update(rows, *names))


def prepare_update(rows: Sequence[Model], *names: str) -> Prepared:
    """Return the statement of `update_rows`, to be run in a transaction."""
    if not rows:
        return []
    readers, sql = _update(type(rows[0]), names, _vendor())
    return [(sql, [[read(row) for read in readers] for row in rows])]


def delete_rows(model: type[Model], keys: Iterable[UUID | int]) -> None:
    """Delete rows of one table, without signals. The caller must delete rows that reference them, which Django would
    search for in each related table."""
    assert model._meta.pk is not None
    sql = f"DELETE FROM {table_name(model)} WHERE {_column(model._meta.pk)} = %s"
    if values := [(as_stored(key),) for key in keys]:
        run_prepared([(sql, values)])


@lru_cache
def _insert(
    model: type[Model], count: int, on_conflict: str, vendor: str
) -> tuple[list[Callable[[Model, bool], Any]], str]:
    """Return (functions that read the values of a row, SQL)."""
    fields = [field for field in model._meta.concrete_fields if field is not model._meta.auto_field]
    columns = ", ".join(_column(field) for field in fields)
    row = f"({', '.join(['%s'] * len(fields))})"
    sql = f"INSERT INTO {table_name(model)} ({columns}) VALUES {', '.join([row] * count)}"
    readers = [_saved(field, vendor) for field in fields]
    return readers, f"{sql} ON CONFLICT {on_conflict}" if on_conflict else sql


@lru_cache
def _update(
    model: type[Model], names: tuple[str, ...], vendor: str
) -> tuple[list[Callable[[Model], Any]], str]:
    """Return (functions that read the values of a row, SQL). The key comes last."""
    changed: list[Any] = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f"{_column(field)} = %s" for field in changed)
    key = model._meta.pk
    readers = [_changed(field, vendor) for field in (*changed, key)]
    return readers, f"UPDATE {table_name(model)} SET {columns} WHERE {_column(key)} = %s"


_Converter = Callable[[Any], Any]
_AS_THEY_ARE: dict[type, type] = {
    models.CharField: str,
    models.TextField: str,
    models.BinaryField: bytes,
    models.BooleanField: bool,
    models.IntegerField: int,
    models.BigIntegerField: int,
    models.PositiveIntegerField: int,
    models.PositiveSmallIntegerField: int,
    models.PositiveBigIntegerField: int,
    models.BigAutoField: int,
}
"""Fields, and the types of values that SQLite stores unchanged. Django's conversion takes longer than storing them."""


def _saved(field: _Field, vendor: str) -> Callable[[Model, bool], Any]:
    """Return a function that reads a value to insert, in the format of the database."""
    name, (kind, convert) = field.attname, _known_conversion(field, vendor)
    if getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False):
        # `pre_save` sets these values on saving.
        kind = None

    def read(row: Model, is_added: bool) -> Any:
        value = getattr(row, name)
        # Exactly this type, because Django must convert subclasses, e.g. string enums.
        if type(value) is kind:
            return convert(value)
        if value is None and kind is not None:
            return None
        return field.get_db_prep_save(field.pre_save(row, is_added), connections[connection.alias])

    return read


def _changed(field: _Field, vendor: str) -> Callable[[Model], Any]:
    """Return a function that reads a value to update, in the format of the database."""
    name, (kind, convert) = field.attname, _known_conversion(field, vendor)

    def read(row: Model) -> Any:
        value = getattr(row, name)
        if type(value) is kind:
            return convert(value)
        return field.get_db_prep_save(value, connections[connection.alias])

    return read


def _known_conversion(field: _Field, vendor: str) -> tuple[type | None, _Converter]:
    """Return (type, converter of its values). The type is None if Django has to convert the values."""
    stored: Any = field.target_field if isinstance(field, models.ForeignKey) else field
    if vendor != "sqlite":
        return None, _same
    if type(stored) is models.UUIDField:
        return UUID, attrgetter("hex")
    if type(stored) is models.DateTimeField and connections[connection.alias].timezone is UTC:
        return datetime, _without_zone
    return _AS_THEY_ARE.get(type(stored)), _same


def _without_zone(moment: datetime) -> str:
    # Use Django's format, because SQLite compares datetimes as text.
    return str(moment if moment.tzinfo is UTC else moment.astimezone(UTC)).removesuffix("+00:00")


def _same(value: Any) -> Any:
    return value


def table_name(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(field: Field[Any, Any]) -> str:
    return connection.ops.quote_name(str(field.column))
