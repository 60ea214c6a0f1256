"""Stores an answer that its user has edited, beside the model's."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from agents.events import MessageCreated
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.actions.messages import append_message
from chatapp.conversations.branches import lineage_below
from chatapp.conversations.models import Branch, Message
from chatapp.conversations.schemas.messages import message_shape
from chatapp.operations.errors import InvalidInput
from chatapp.operations.workers import jobs
from chatapp.realtime import event_log
from chatapp.runs.actions.sending import refuse_while_running


def edit_answer(*, user: User, conversation_id: str, message_id: str, text: str, now: datetime) -> Message:
    """Store the edited answer in a new branch, which the conversation then shows, and return it.

    Raise NotFound, Conflict (a run is active), InvalidInput.
    """
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        refuse_while_running(conversation)
        answer = accessible_message(user, conversation_id, message_id)
        question = answer.parent
        if answer.role != Message.Role.ASSISTANT or question is None or question.role != Message.Role.USER:
            raise InvalidInput("Only your messages and answers to them can be edited.")
        if not text.strip():
            details = [{"field": "content", "message": "is empty"}]
            raise InvalidInput("The answer is empty.", details=details)
        branch = Branch.objects.create(conversation=conversation, lineage=lineage_below(question))
        edited = append_message(
            conversation,
            branch=branch,
            role=Message.Role.ASSISTANT,
            kind=Message.Kind.EDITED,
            parent=question,
            parts=[{"type": "text", "text": text}],
            now=now,
            model_name=answer.model_name,
        )
        conversation.branch, conversation.last_activity_at = branch, now
        # The user wrote it, so it counts as read.
        conversation.read_count = conversation.next_position
        created = MessageCreated(conversation_id=str(conversation.pk), at=now, message=message_shape(edited))
        shown = updated_event(conversation, now, is_quiet=True)
        event_log.append(conversation, created, shown, changed=["branch", "last_activity_at", "read_count"])
        jobs.wake_worker("chatapp.recall.tasks.index_conversation", str(conversation.pk))
        record_created_id(edited.pk)
        return edited
