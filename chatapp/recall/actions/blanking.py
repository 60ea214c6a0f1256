"""Take the words out of a message: its row, its place in the index, its claims, and the event that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from agents.events import MessageForgotten
from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.realtime import event_log
from chatapp.recall.actions.indexing import reindex_message
from memory.tokens import estimate_parts


def blank_message(row: Message, now: datetime, left: Sequence[dict[str, Any]] = ()) -> None:
    """Called with its conversation locked. It keeps its place, so that positions stay gapless, and the parts that are
    `left`."""
    row.parts = list(left)
    row.token_estimate = estimate_parts(message_values.parts_from_json(row.parts)) if left else 0
    row.request_hash = ""
    row.forgotten_at = now
    row.save(update_fields=["parts", "token_estimate", "request_hash", "forgotten_at"])
    reindex_message(row)


def tell_forgotten(conversation: Conversation, rows: Iterable[Message], now: datetime) -> None:
    """Called with the conversation locked: its readers show these messages as they are now."""
    home = str(conversation.pk)
    facts = [MessageForgotten(conversation_id=home, at=now, message=message_shape(row)) for row in rows]
    if facts:
        event_log.append(conversation, *facts)
