"""Read one row by its id, where a row of somebody else is not found; and lock rows."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

from django.db import connection, models
from django.db.models import QuerySet

from chatapp.operations.errors import NotFound

Row = TypeVar("Row", bound=models.Model)


def parse_id(raw: str | UUID) -> UUID:
    """Raise NotFound for what is no id."""
    try:
        return raw if isinstance(raw, UUID) else UUID(raw)
    except ValueError:
        raise NotFound() from None


def find_row(rows: QuerySet[Row], row_id: str | UUID) -> Row:
    """Return the row with this id. Raise NotFound where it is not among `rows`."""
    # Not `first`: it orders the one row there can be, which takes longer than reading it.
    row = next(iter(rows.filter(pk=parse_id(row_id)).order_by()), None)
    if row is None:
        raise NotFound()
    return row


def lock_rows(rows: QuerySet[Any]) -> None:
    """Hold rows in the order of their keys until the transaction ends. On SQLite a writer holds the whole database."""
    if connection.features.has_select_for_update:
        # Everybody locks in this order, so that two never wait for each other.
        list(rows.select_for_update().order_by("pk").values_list("pk"))
