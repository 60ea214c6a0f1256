"""Take the words out of messages: their rows, their place in the index, their claims, and the event that says so."""

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
from chatapp.operations.statements import update_rows
from chatapp.realtime import event_log
from chatapp.recall.actions.claims import note_messages
from chatapp.recall.actions.indexing import reindex_messages
from chatapp.recall.actions.removal import hide_sources
from memory.tokens import estimate_parts

Left = Mapping[UUID, Sequence[dict[str, Any]]]
"""The parts that stay, by message id."""


def blank_messages(
    rows: Sequence[Message], now: datetime, left: Left = MappingProxyType({}), *, hides: bool = False
) -> None:
    """Empty these messages, which keep their places so that positions stay gapless. To be called with their
    conversations locked.

    `hides`: hide them from the search only; the caller removes them from the index later.
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


def tell_forgotten(conversation: Conversation, rows: Iterable[Message], now: datetime) -> None:
    """Tell the conversation's readers to show these messages as they are now. To be called with the conversation
    locked."""
    home = str(conversation.pk)
    facts = [MessageForgotten(conversation_id=home, at=now, message=message_shape(row)) for row in rows]
    if facts:
        event_log.append(conversation, *facts)
