"""Lets an operator read a conversation if the deployment permits it. Each look is recorded in the audit log first."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from chatapp.conversations.models import Conversation
from chatapp.conversations.selectors.messages import MessageRows, newest_page, page_before
from chatapp.operations.database import audit
from chatapp.operations.database.access import find_row
from chatapp.operations.errors import NotFound
from chatapp.operations.models import AuditEvent

MESSAGES_SHOWN = 100


def open_for_operator(
    conversation_id: UUID | str, *, actor_id: UUID, reason: str, before: int | None = None
) -> tuple[Conversation, MessageRows]:
    """Record the look and return (the conversation, its newest messages, or those before a position).

    Raise NotFound, also if the conversation is temporary or in the trash, or operators may not read chats.
    """
    conversation = find_row(readable_conversations(), conversation_id)
    if conversation.branch is None:
        raise NotFound
    audit.record(
        AuditEvent.Kind.LOOKED,
        user_id=conversation.owner_id,
        actor_id=actor_id,
        conversation=str(conversation.pk),
        reason=reason,
    )
    if before is None:
        return conversation, newest_page(conversation.branch, MESSAGES_SHOWN)
    return conversation, page_before(conversation.branch, before, MESSAGES_SHOWN)


def readable_conversations() -> QuerySet[Conversation]:
    """Return the conversations that operators may read; none if OPERATORS_READ_CHATS is off."""
    if not settings.OPERATORS_READ_CHATS:
        return Conversation.objects.none()
    rows = Conversation.objects.filter(temporary=False, trashed=None, user__isnull=False)
    return rows.select_related("branch", "user")
