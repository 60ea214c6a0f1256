"""Rows as the API, the events and the exports show them."""

from __future__ import annotations

from typing import Any

from chatapp.long_term.models import EntrySource, MemoryEntry
from chatapp.operations.clock import iso_time
from chatapp.operations.ids import id_or_none


def entry_shape(row: MemoryEntry) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "day": row.day.isoformat(),
        "text": row.text,
        "author": row.author,
        "shared_memory_of": row.scope.name if row.scope else None,
        "state": row.state,
        "revision": row.revision,
        "conversation_id": id_or_none(row.conversation_id),
        "first_message_id": id_or_none(row.first_message_id),
        "last_message_id": id_or_none(row.last_message_id),
        "sources": [_source_shape(source) for source in row.sources.all()],
        "created_at": iso_time(row.created_at),
        "updated_at": iso_time(row.updated_at),
    }


def _source_shape(row: EntrySource) -> dict[str, Any]:
    return {
        "conversation_id": str(row.conversation_id),
        "first_message_id": str(row.first_message_id),
        "last_message_id": str(row.last_message_id),
        "created_at": iso_time(row.created_at),
    }
