"""Keyset cursors: opaque to clients, they hold the sort key of the last row."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from uuid import UUID

from chatapp.operations.errors import InvalidInput


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
