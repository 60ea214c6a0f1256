"""Positions around an answer that is being written: what comes before it takes its position, and it moves on.

Positions stay gapless. Only the answer and what was sent after it began can move; all older messages keep theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from chatapp.conversations.actions.messages import new_message
from chatapp.conversations.models import Conversation, Message
from chatapp.operations.statements import execute, insert_rows
from chatapp.runs.models import Run

_MOVE_LAST = "UPDATE chatapp_message SET position = %s WHERE id = %s AND position = %s"
_ANY_SENT = "SELECT 1 FROM chatapp_message WHERE parent_id = %s AND kind = 'injected' LIMIT 1"


@dataclass(frozen=True, slots=True)
class AnswerPosition:
    """The answer that is being written, and its branch."""

    answer_id: UUID
    branch_id: UUID


@dataclass(frozen=True, slots=True)
class AnswerMessage:
    """A message to insert before an answer."""

    role: str
    parts: list[dict[str, Any]]


def insert_before_answer(
    conversation: Conversation, place: AnswerPosition, messages_before: Sequence[AnswerMessage], now: datetime
) -> list[Message]:
    """Insert messages before the answer, which is their parent. `conversation` is locked; the event that follows
    stores its counters."""
    first, count = _make_room(conversation, place, len(messages_before)), len(messages_before)
    inserted = [
        new_message(
            conversation,
            position=position,
            branch_id=place.branch_id,
            role=belonging.role,
            parent_id=place.answer_id,
            parts=belonging.parts,
            now=now,
        )
        for position, belonging in enumerate(messages_before, start=first)
    ]
    insert_rows(inserted)
    conversation.next_position += count
    return inserted


def _make_room(conversation: Conversation, place: AnswerPosition, count: int) -> int:
    """Move the answer and what is behind it by `count` positions, and return where it was."""
    last = conversation.next_position - 1
    # Mostly the answer is the last message: one statement moves it, and changes no row where it is not.
    if execute(_MOVE_LAST, last + count, place.answer_id, last).rowcount:
        return last
    first = Message.objects.values_list("position", flat=True).get(pk=place.answer_id)
    behind = Message.objects.filter(conversation=conversation, position__gte=first)
    # One by one from the end: no two may share a position, not even for a moment.
    for message_id in behind.order_by("-position").values_list("pk", flat=True):
        Message.objects.filter(pk=message_id).update(position=F("position") + count)
    return first


def is_anything_new(answer_id: UUID, known: Collection[UUID]) -> bool:
    """Return whether a message is behind the answer, or before it and not known to the run."""
    if execute(_ANY_SENT, answer_id).fetchone() is None:  # as before nearly every call of a model
        return False
    sent = Message.objects.filter(parent=answer_id, kind=Message.Kind.INJECTED)
    is_unknown = Q(forgotten_at=None) & ~Q(pk__in=known)
    return sent.filter(Q(position__gt=F("parent__position")) | is_unknown).exists()


def unknown_messages(run: Run, known: Collection[UUID]) -> QuerySet[Message]:
    """Return the messages sent during the run that were not taken back and that the run has not seen, oldest first."""
    sent = Message.objects.filter(parent=run.answer_id, kind=Message.Kind.INJECTED, forgotten_at=None)
    return sent.exclude(pk__in=known).order_by("position")


def messages_behind(run: Run) -> list[Message]:
    """Return what the user sent while the answer was being written and no model call has seen, oldest first."""
    answer = Message.objects.get(pk=run.answer_id)
    rows = Message.objects.filter(branch=answer.branch, kind=Message.Kind.INJECTED)
    return list(rows.filter(position__gt=answer.position).order_by("position"))


def move_answer_behind(conversation: Conversation, run: Run, messages: Sequence[Message]) -> None:
    """Move the answer behind these messages, which follow it. `conversation` is locked."""
    answer = Message.objects.get(pk=run.answer_id)
    places = [answer.position, *(message.position for message in messages)]
    # Out of the way first: no two may share a position.
    Message.objects.filter(pk=answer.pk).update(position=conversation.next_position)
    # There is one place more than messages: the last is the answer's.
    for message, place in zip(messages, places, strict=False):
        message.position = place
        message.save(update_fields=["position"])
    Message.objects.filter(pk=answer.pk).update(position=places[-1])


def move_answer_before(conversation: Conversation, run: Run, messages: Sequence[Message]) -> None:
    """Move an answer that is the newest message before these, which belong to it from now on. `conversation` is
    locked."""
    answer = run.answer
    places = [*(message.position for message in messages), answer.position]
    Message.objects.filter(pk=answer.pk).update(position=conversation.next_position)
    # From the last on: each takes the place that the one behind it has left.
    for message, place in zip(reversed(messages), reversed(places), strict=False):
        message.position, message.parent = place, answer
        message.save(update_fields=["position", "parent"])
    answer.position = places[0]
    answer.save(update_fields=["position"])
