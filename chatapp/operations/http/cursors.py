"""Pagination of lists. Cursors are opaque to clients and contain the sort key of the last row."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from chatapp.operations.errors import InvalidInput

Row = TypeVar("Row", bound=Model)


def read_page(
    rows: QuerySet[Row], by: str, cursor: str | None, limit: int, shape: Callable[[Row], Any]
) -> dict[str, Any]:
    """Return a page of `rows`, each converted by `shape`, newest first by the column `by`. Raise InvalidInput for an
    invalid cursor."""
    # Read one row more, to learn without a count whether there is a next page.
    found = list(newest_first(rows, by, decode_cursor(cursor))[: limit + 1])
    page, has_more = found[:limit], len(found) > limit
    next_cursor = encode_cursor(getattr(page[-1], by), page[-1].pk) if has_more else None
    return {"items": [shape(row) for row in page], "next_cursor": next_cursor}


def newest_first(rows: QuerySet[Row], by: str, before: tuple[datetime, UUID] | None) -> QuerySet[Row]:
    """Return the rows after `before`, the last row of the previous page, by a column and their keys, newest first."""
    if before is not None:
        moment, row_id = before
        # The second condition alone is a range of an index, so a late page costs as much as the first.
        rows = rows.filter(Q(**{f"{by}__lt": moment}) | Q(pk__lt=row_id), **{f"{by}__lte": moment})
    return rows.order_by(f"-{by}", "-pk")


def encode_cursor(moment: datetime, row_id: UUID) -> str:
    return base64.urlsafe_b64encode(f"{moment.isoformat()} {row_id}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> tuple[datetime, UUID] | None:
    """Return the sort key; None without a cursor. Raise InvalidInput for an invalid one."""
    if not cursor:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        moment, _, row_id = base64.urlsafe_b64decode(padded).decode("ascii").partition(" ")
        said_at = datetime.fromisoformat(moment)
        decoded = (said_at.astimezone(UTC), UUID(row_id)) if said_at.tzinfo else None
    except (ValueError, OverflowError, binascii.Error):
        decoded = None
    if decoded is None:
        details = [{"field": "cursor", "message": "Use `next_cursor` of the previous page."}]
        raise InvalidInput("This cursor is invalid.", details=details) from None
    return decoded
