"""Stores and removes users' ratings of answers."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.models import Message
from chatapp.features.feedback.models import AnswerFeedback
from chatapp.operations.errors import InvalidInput


@transaction.atomic
def rate_answer(
    *, user: User, conversation_id: str, message_id: str, rating: str, reason: str, now: datetime
) -> AnswerFeedback:
    """Store the rating and replace an earlier one. Raise NotFound, and InvalidInput if the message is not an answer."""
    conversation = lock_conversation(user, conversation_id)
    message = accessible_message(user, conversation_id, message_id)
    if message.role != Message.Role.ASSISTANT:
        raise InvalidInput("Only answers can be rated.")
    columns = {
        "rating": rating,
        "reason": reason,
        # Copied, because the rating outlives the message.
        "model_name": message.model_name,
        "agent_id": conversation.agent_id,
        "given_at": now,
    }
    row, _ = AnswerFeedback.objects.update_or_create(user=user, message=message, defaults=columns)
    return row


@transaction.atomic
def withdraw_rating(*, user: User, conversation_id: str, message_id: str) -> None:
    """Remove the user's rating of a message, if there is one. Raise NotFound if the message is not the user's."""
    message = accessible_message(user, conversation_id, message_id)
    AnswerFeedback.objects.filter(user=user, message=message).delete()


def delete_ratings(user: User) -> None:
    AnswerFeedback.objects.filter(user=user).delete()
