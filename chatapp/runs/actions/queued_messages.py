"""What was sent during a run and no model call has seen yet: it can still be said in other words, or taken back."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from agents.events import MessageEdited
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.models import Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.conversations.selectors.messages import is_queued
from chatapp.files.actions import delete_unshared_attachments
from chatapp.files.selectors import accessible_attachments
from chatapp.realtime import event_log
from chatapp.recall.actions.blanking import blank_message, tell_forgotten
from chatapp.runs.actions.sending import NewMessage, message_parts
from memory.tokens import estimate_parts


def edit_queued(
    *, user: User, conversation_id: str, message_id: str, new: NewMessage, now: datetime
) -> Message | None:
    """In its place; None where it is not queued any more, or never was. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        message = accessible_message(user, conversation_id, message_id)
        if not is_queued(message):
            return None
        attachments = accessible_attachments(user, list(new.attachment_ids))
        message.parts = message_parts(new.text, attachments)
        message.token_estimate = estimate_parts(message_values.parts_from_json(message.parts))
        message.save(update_fields=["parts", "token_estimate"])
        message.attachments.set(attachments)
        shape = message_shape(message)
        event_log.append(
            conversation, MessageEdited(conversation_id=str(conversation.pk), at=now, message=shape)
        )
        return message


def withdraw_queued(
    *, user: User, conversation_id: str, message_id: str, now: datetime
) -> tuple[str, ...] | None:
    """Takes its words away while nothing was made of them; the answer goes on. The hashes of bytes nobody may need
    now; None where it is not queued any more, or never was. Raises NotFound."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        message = accessible_message(user, conversation_id, message_id)
        if not is_queued(message):
            return None
        hashes = delete_unshared_attachments([message.pk])
        blank_message(message, now)
        tell_forgotten(conversation, [message], now)
        return hashes
