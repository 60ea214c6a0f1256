"""Blanks messages in their rows, the search index and the claims, and appends the events that report it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from agents.events import MessageForgotten
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.operations.database.statements import update_rows
from chatapp.realtime import event_log
from chatapp.recall.actions.claims import note_messages
from chatapp.recall.actions.indexing import reindex_messages
from chatapp.recall.actions.removal import hide_sources
from memory.tokens import estimate_parts

Left = Mapping[UUID, Sequence[dict[str, Any]]]
"""The parts to keep, by message id."""


def blank_messages(
    rows: Sequence[Message], now: datetime, left: Left = MappingProxyType({}), *, hides: bool = False
) -> None:
    """Empty these messages except for the parts in `left`. Their rows stay, so that positions have no gaps. The caller
    holds the locks of their conversations.

    `hides`: only hide them from the search; the caller removes them from the index later.
    """
    for row in rows:
        row.parts = list(left.get(row.pk, ()))
        row.token_estimate = estimate_parts(message_values.parts_from_json(row.parts)) if row.parts else 0
        row.request_hash = ""
        row.forgotten_at = now
    update_rows(rows, "parts", "token_estimate", "request_hash", "forgotten_at")
    if hides:
        hide_sources([row.pk for row in rows])
    for user_id in {row.user_id for row in rows}:
        own = [row for row in rows if row.user_id == user_id]
        if hides:
            note_messages(user_id, own)
        else:
            reindex_messages(user_id, own)


def publish_forgotten(conversation: Conversation, rows: Iterable[Message], now: datetime) -> None:
    """Append events that show clients these messages as they are now. The caller holds the conversation's lock."""
    home = str(conversation.pk)
    facts = [MessageForgotten(conversation_id=home, at=now, message=message_shape(row)) for row in rows]
    if facts:
        event_log.append(conversation, *facts)
