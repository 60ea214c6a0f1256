"""Rows as the API, the events and the exports show them."""

from __future__ import annotations

from typing import Any

from chatapp.compaction.models import Compaction
from chatapp.operations.clock import iso_time


def compaction_shape(row: Compaction) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "conversation_id": str(row.conversation_id),
        "status": row.status,
        "strategy": row.strategy,
        "summary": row.summary,
        "reminder": row.reminder or None,
        "message_count": row.message_count,
        "kept_count": row.kept_count,
        "first_position": row.first_position,
        "last_position": row.last_position,
        "tokens_before": row.tokens_before,
        "tokens_after": row.tokens_after,
        "is_extract": bool(row.fallback_reason),
        "fallback_reason": row.fallback_reason or None,
        "error": row.error or None,
        "usage": row.usage or {},
        "created_at": iso_time(row.created_at),
        "finished_at": iso_time(row.finished_at),
    }
