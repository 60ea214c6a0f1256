"""Statements whose SQL is built once, for the tool loop. All run in the caller's transaction.

Django builds the SQL each time, which takes ten times as long as the database takes for the statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection, connections
from django.db.backends.utils import CursorWrapper
from django.db.models import Field, Model

_Fields = tuple["Field[Any, Any]", ...]


def execute(sql: str, *values: int | str | UUID) -> CursorWrapper:
    """Return the cursor of the executed statement."""
    cursor = connection.cursor()
    cursor.execute(sql, [as_stored(value) for value in values])
    return cursor


def as_stored(value: int | str | UUID) -> Any:
    """Return the value as a parameter: SQLite has no type for UUIDs."""
    return value.hex if isinstance(value, UUID) and connection.vendor == "sqlite" else value


def as_key(value: str | UUID) -> UUID:
    """Return a key as it was read from either database."""
    return value if isinstance(value, UUID) else UUID(value)


def insert_rows(rows: Sequence[Model]) -> None:
    """Insert as `bulk_create` does. The rows do not get keys that the database makes."""
    if not rows:
        return
    fields, sql = _insert(type(rows[0]))
    database = connections[connection.alias]  # `connection` looks itself up at each use
    with database.cursor() as cursor:
        for row in rows:
            values = [field.get_db_prep_save(field.pre_save(row, True), database) for field in fields]
            cursor.execute(sql, values)
            row._state.adding = False


def update_row(row: Model, *names: str) -> None:
    """Update as `save(update_fields=names)` does, without signals."""
    fields, sql = _update(type(row), names)
    database = connections[connection.alias]
    values = [field.get_db_prep_save(getattr(row, field.attname), database) for field in fields]
    with database.cursor() as cursor:
        cursor.execute(sql, values)


@lru_cache
def _insert(model: type[Model]) -> tuple[_Fields, str]:
    fields = tuple(field for field in model._meta.concrete_fields if field is not model._meta.auto_field)
    columns = ", ".join(_column(field) for field in fields)
    return fields, f"INSERT INTO {_table(model)} ({columns}) VALUES ({', '.join(['%s'] * len(fields))})"


@lru_cache
def _update(model: type[Model], names: tuple[str, ...]) -> tuple[_Fields, str]:
    """Return (fields, SQL). The key comes last."""
    changed: list[Any] = [model._meta.get_field(name) for name in names]
    columns = ", ".join(f"{_column(field)} = %s" for field in changed)
    key = model._meta.pk
    return (*changed, key), f"UPDATE {_table(model)} SET {columns} WHERE {_column(key)} = %s"


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(field: Field[Any, Any]) -> str:
    return connection.ops.quote_name(str(field.column))
