"""Rows as the API, the events and the exports show them."""

from __future__ import annotations

from typing import Any

from chatapp.context.models import SentRequest
from chatapp.operations.clock import iso_time


def request_shape(row: SentRequest) -> dict[str, Any]:
    return {
        "n": row.n,
        "purpose": row.purpose,
        "model": row.model_name,
        "sha256": row.sha256,
        "tokens": row.tokens,
        "created_at": iso_time(row.created_at),
    }
