"""Creates message rows, at the next position of their conversation."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from chatapp.conversations import message_values
from chatapp.conversations.models import Branch, Conversation, Message
from memory.tokens import estimate_parts


def append_message(
    conversation: Conversation,
    *,
    branch: Branch,
    role: str,
    parts: list[dict[str, Any]],
    now: datetime,
    **columns: Any,
) -> Message:
    """Store a message at the next position; `conversation` must be locked."""
    message = next_message(conversation, branch_id=branch.pk, role=role, parts=parts, now=now, **columns)
    message.save(force_insert=True)
    return message


def next_message(conversation: Conversation, **columns: Any) -> Message:
    """Return an unsaved message for the next position; `conversation` must be locked."""
    message = new_message(conversation, position=conversation.next_position, **columns)
    conversation.next_position += 1
    return message


def new_message(
    conversation: Conversation,
    *,
    position: int,
    branch_id: UUID,
    role: str,
    parts: list[dict[str, Any]],
    now: datetime,
    **columns: Any,
) -> Message:
    """Return an unsaved message."""
    return Message(
        conversation=conversation,
        branch_id=branch_id,
        user_id=conversation.owner_id,
        position=position,
        role=role,
        parts=parts,
        token_estimate=estimate_parts(message_values.parts_from_json(parts)),
        created_at=now,
        **columns,
    )
