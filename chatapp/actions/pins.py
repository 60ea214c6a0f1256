"""Pins: messages their user wants in context however long the conversation becomes."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from agents.events import MessagePinned
from chatapp import event_log, row_shapes
from chatapp.errors import InvalidInput
from chatapp.models import Message, User
from chatapp.selectors.access import accessible_message, lock_conversation


def pin_message(*, user: User, conversation_id: str, message_id: str, pinned: bool, now: datetime) -> Message:
    """Raises NotFound, and InvalidInput for a step of a tool loop: alone it would mean nothing to a model."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        message = accessible_message(user, conversation_id, message_id)
        if message.role not in (Message.Role.USER, Message.Role.ASSISTANT) or _calls_tools(message):
            raise InvalidInput("Only your messages and the model's answers can be pinned.")
        if message.pinned != pinned:
            message.pinned = pinned
            message.save(update_fields=["pinned"])
            shape = row_shapes.message_shape(message)
            event_log.append(
                conversation, MessagePinned(conversation_id=str(conversation.pk), at=now, message=shape)
            )
        return message


def _calls_tools(message: Message) -> bool:
    return any(part["type"] == "tool_call" for part in message.parts)
