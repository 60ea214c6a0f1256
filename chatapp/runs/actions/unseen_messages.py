"""Messages sent during an answer that ended without seeing them: answered next, or held after a Stop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from agents import events
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.conversations.selectors.messages import QUEUED
from chatapp.realtime import event_log
from chatapp.runs.actions.message_order import messages_behind, move_answer_before
from chatapp.runs.models import Run


def release_injected(conversation: Conversation, run: Run, now: datetime) -> Message | None:
    """Turn messages that no model call has seen into ordinary ones at a run's end. Return the last, to be answered
    next."""
    messages = [message for message in messages_behind(run) if message.forgotten_at is None]
    return _release(conversation, messages, now, run_id=str(run.pk))


def release_unseen(conversation: Conversation, branch: Branch, now: datetime) -> Message | None:
    """Turn messages that a stopped answer of the branch has not seen into ordinary ones, and return the last.
    `conversation` must be locked, without an active run."""
    return _release(conversation, list(_unseen(branch)), now)


def move_unseen_to(conversation: Conversation, answer: Message, run: Run, now: datetime) -> None:
    """Move messages that wait behind a stopped answer behind the one that continues it, whose run takes them in before
    its first call. `conversation` must be locked."""
    waiting = list(_unseen(answer.branch).filter(parent=answer))
    if not waiting:
        return
    move_answer_before(conversation, run, waiting)
    event_log.append(
        conversation, moved_event(conversation, run.answer_id, waiting, now, str(run.pk)), run=run
    )


def _unseen(branch: Branch) -> QuerySet[Message]:
    return Message.objects.filter(QUEUED, branch=branch).order_by("position")


def _release(
    conversation: Conversation, messages: Sequence[Message], now: datetime, run_id: str | None = None
) -> Message | None:
    if not messages:
        return None
    answer_id = parent_id = messages[0].parent_id
    assert answer_id is not None
    for message in messages:
        # Chain them: with the same parent they would be versions of each other.
        message.kind, message.pinned, message.parent_id = Message.Kind.MESSAGE, False, parent_id
        message.save(update_fields=["kind", "pinned", "parent"])
        parent_id = message.pk
    event_log.append(conversation, moved_event(conversation, answer_id, messages, now, run_id))
    return messages[-1]


def moved_event(
    conversation: Conversation,
    answer_id: UUID,
    messages: Sequence[Message],
    now: datetime,
    run_id: str | None = None,
) -> events.MessageMoved:
    """Return the event with the new kind of these messages, and the positions of them and the answer."""
    rows = Message.objects.filter(pk__in=[answer_id, *(message.pk for message in messages)])
    return events.MessageMoved(
        conversation_id=str(conversation.pk),
        run_id=run_id,
        at=now,
        items=[
            events.MovedMessage(message_id=str(key), position=place)
            for key, place in rows.values_list("pk", "position")
        ],
        kind=messages[-1].kind,
    )
