"""Pages of lists. Their cursors are opaque to clients and hold the sort key of the last row."""

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
    """Return a page of `rows`, each as `shape` says, the newest by the column `by` first. Raise InvalidInput for a
    cursor that is none of ours."""
    # One more than is shown says whether there is a next page, without a count.
    found = list(newest_first(rows, by, decode_cursor(cursor))[: limit + 1])
    page, has_more = found[:limit], len(found) > limit
    next_cursor = encode_cursor(getattr(page[-1], by), page[-1].pk) if has_more else None
    return {"items": [shape(row) for row in page], "next_cursor": next_cursor}


def newest_first(rows: QuerySet[Row], by: str, before: tuple[datetime, UUID] | None) -> QuerySet[Row]:
    """Return the rows by a column and their keys, the newest first, behind the last row of the page ahead."""
    if before is not None:
        moment, row_id = before
        # By itself, the second condition is a range of an index; a page far behind costs what the first one does.
        rows = rows.filter(Q(**{f"{by}__lt": moment}) | Q(pk__lt=row_id), **{f"{by}__lte": moment})
    return rows.order_by(f"-{by}", "-pk")


def encode_cursor(moment: datetime, row_id: UUID) -> str:
    return base64.urlsafe_b64encode(f"{moment.isoformat()} {row_id}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> tuple[datetime, UUID] | None:
    """Return the sort key; None without a cursor. Raise InvalidInput for one that `encode_cursor` did not make."""
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
        details = [{"field": "cursor", "message": "Use next_cursor of the page before."}]
        raise InvalidInput("This cursor is not one of ours.", details=details) from None
    return decoded
