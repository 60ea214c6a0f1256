"""Reads single rows for a user. Every function raises NotFound for another user's row."""

from __future__ import annotations

from uuid import UUID

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.operations.database.access import find_row, parse_id


def accessible_conversation(user: User, conversation_id: str | UUID) -> Conversation:
    rows = Conversation.objects.filter(user=user)
    rows = rows.select_related("model", "agent__model", "scope", "branch", "user")
    return find_row(rows, conversation_id)


def lock_conversation(user: User, conversation_id: str | UUID) -> Conversation:
    """Return the row, locked until the transaction ends. Positions and event numbers are assigned under this lock."""
    # No select_related, because PostgreSQL refuses FOR UPDATE on the nullable side of a join.
    return find_row(Conversation.objects.select_for_update().filter(user=user), conversation_id)


def accessible_message(user: User, conversation_id: str | UUID, message_id: str | UUID) -> Message:
    rows = Message.objects.filter(conversation__user=user, conversation_id=parse_id(conversation_id))
    return find_row(rows, message_id)
