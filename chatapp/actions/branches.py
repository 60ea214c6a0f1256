"""Which branch a conversation shows, and goes on in."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from chatapp import event_log
from chatapp.actions.conversations import updated_event
from chatapp.actions.messages import refuse_while_running
from chatapp.models import Conversation, User
from chatapp.selectors.access import accessible_message, lock_conversation
from chatapp.selectors.siblings import newest_branch_showing


def show_message(*, user: User, conversation_id: str, message_id: str, now: datetime) -> Conversation:
    """Turns to the branch with that message. Raises NotFound, Conflict (a run is going on)."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        refuse_while_running(conversation)
        branch = newest_branch_showing(accessible_message(user, conversation_id, message_id))
        if branch != conversation.branch:
            conversation.branch = branch
            conversation.save(update_fields=["branch"])
            event_log.append(conversation, updated_event(conversation, now))
    return conversation
