"""The one way to a row: by its id and the user who asks. Not yours is not found."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from django.db import models
from django.db.models import QuerySet

from chatapp.operations.errors import NotFound

Row = TypeVar("Row", bound=models.Model)


def parse_id(raw: str | UUID) -> UUID:
    try:
        return raw if isinstance(raw, UUID) else UUID(raw)
    except ValueError:
        raise NotFound() from None


def _only(rows: QuerySet[Row], row_id: str | UUID) -> Row:
    row = rows.filter(pk=parse_id(row_id)).first()
    if row is None:
        raise NotFound()
    return row
