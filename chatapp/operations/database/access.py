"""Finds a row by its id among the rows that the caller may see, saves rows of unique values, and locks rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

from django.db import IntegrityError, connection, models, transaction
from django.db.models import QuerySet

from chatapp.operations.database.outages import is_deleted_concurrently
from chatapp.operations.errors import Conflict, NotFound

Row = TypeVar("Row", bound=models.Model)


def uuid_or_none(raw: str | UUID) -> UUID | None:
    """Return the id as a UUID; None if it is invalid."""
    try:
        return raw if isinstance(raw, UUID) else UUID(raw)
    except ValueError:
        return None


def parse_id(raw: str | UUID) -> UUID:
    """Return the id as a UUID. Raise NotFound if it is invalid."""
    if (parsed := uuid_or_none(raw)) is None:
        raise NotFound()
    return parsed


def find_row(rows: QuerySet[Row], row_id: str | UUID) -> Row:
    """Return the row with this id. Raise NotFound if it is not among `rows`."""
    # `first` would order the result, which takes longer than reading its only row.
    row = next(iter(rows.filter(pk=parse_id(row_id)).order_by()), None)
    if row is None:
        raise NotFound()
    return row


def save_unique(row: Row, columns: Iterable[str] | None, taken: str) -> Row:
    """Save the row, or only these columns, and return it. Raise Conflict with the message `taken` if another row has
    the same unique values."""
    try:
        # Use a savepoint: after an error, PostgreSQL rejects all further statements of a transaction.
        with transaction.atomic():
            row.save(update_fields=columns)
    except IntegrityError as error:
        if is_deleted_concurrently(error):  # it references a row that was deleted meanwhile
            raise
        raise Conflict(taken) from None
    return row


def lock_rows(rows: QuerySet[Any]) -> None:
    """Lock rows in key order until the transaction ends. On SQLite, a writer locks the whole database anyway."""
    if connection.features.has_select_for_update:
        # All callers use this order, so that no two transactions deadlock.
        list(rows.select_for_update().order_by("pk").values_list("pk"))
