"""What was sent during a run and no model call has seen yet: it can still be said in other words, or taken back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.events import MessageEdited
from chatapp import event_log, mapping, row_shapes
from chatapp.actions.files import delete_unshared_attachments
from chatapp.actions.forget_traces import empty_message, redact_events, tell_forgotten
from chatapp.actions.messages import NewMessage, message_parts
from chatapp.actions.purging import mark_purge
from chatapp.models import Conversation, Event, Message, User
from chatapp.search.index import vocabulary
from chatapp.selectors.access import accessible_attachments, accessible_message, lock_conversation
from chatapp.selectors.messages import is_queued
from memory.redaction import Forgotten
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
        message.token_estimate = estimate_parts(mapping.parts_from_json(message.parts))
        message.save(update_fields=["parts", "token_estimate"])
        message.attachments.set(attachments)
        shape = row_shapes.message_shape(message)
        _say_otherwise(conversation, shape)
        event_log.append(
            conversation, MessageEdited(conversation_id=str(conversation.pk), at=now, message=shape)
        )
        return message


def _say_otherwise(conversation: Conversation, shape: Mapping[str, Any]) -> None:
    """In what was told of it already: words that nobody sees any more would not be found to be forgotten."""
    told = Event.objects.filter(conversation=conversation, type__in=("message.created", "message.edited"))
    for event in told.filter(payload__message__id=shape["id"]):
        event.payload["message"]["content"] = shape["content"]
        event.save(update_fields=["payload"])


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
        empty_message(message, now)
        nothing_else = Forgotten([], vocabulary)
        redact_events(conversation, nothing_else, changed={message.pk: message}, gone=[message.pk])
        tell_forgotten(conversation, [message], now)
        mark_purge()
        return hashes
