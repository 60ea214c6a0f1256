"""Positions around an answer being written: messages that come before it take its position, and it moves on.

Positions stay gapless. Only the answer and messages sent after it began can move; all older messages keep theirs.
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
from chatapp.operations.database.statements import execute, insert_rows
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
    """Insert messages before the answer, which is their parent. `conversation` must be locked; the next appended event
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
    """Move the answer and all messages after it by `count` positions, and return the answer's old position."""
    last = conversation.next_position - 1
    # The answer is mostly the last message. Then one statement moves it; otherwise that statement changes no row.
    if execute(_MOVE_LAST, last + count, place.answer_id, last).rowcount:
        return last
    first = Message.objects.values_list("position", flat=True).get(pk=place.answer_id)
    behind = Message.objects.filter(conversation=conversation, position__gte=first)
    # Move them one by one from the end: no two may share a position, not even for a moment.
    for message_id in behind.order_by("-position").values_list("pk", flat=True):
        Message.objects.filter(pk=message_id).update(position=F("position") + count)
    return first


def has_new_messages(answer_id: UUID, known: Collection[UUID]) -> bool:
    """Return whether a message was sent that is after the answer, or before it and not in `known`."""
    if execute(_ANY_SENT, answer_id).fetchone() is None:  # the common case before a model call
        return False
    sent = Message.objects.filter(parent=answer_id, kind=Message.Kind.INJECTED)
    is_unknown = Q(forgotten_at=None) & ~Q(pk__in=known)
    return sent.filter(Q(position__gt=F("parent__position")) | is_unknown).exists()


def unknown_messages(run: Run, known: Collection[UUID]) -> QuerySet[Message]:
    """Return the messages sent during the run, without withdrawn and known ones, oldest first."""
    sent = Message.objects.filter(parent=run.answer_id, kind=Message.Kind.INJECTED, forgotten_at=None)
    return sent.exclude(pk__in=known).order_by("position")


def messages_behind(run: Run) -> list[Message]:
    """Return the messages sent while the answer was being written that no model call has seen, oldest first."""
    answer = Message.objects.get(pk=run.answer_id)
    rows = Message.objects.filter(branch=answer.branch, kind=Message.Kind.INJECTED)
    return list(rows.filter(position__gt=answer.position).order_by("position"))


def move_answer_behind(conversation: Conversation, run: Run, messages: Sequence[Message]) -> None:
    """Move the answer after these messages, which directly follow it. `conversation` must be locked."""
    answer = Message.objects.get(pk=run.answer_id)
    places = [answer.position, *(message.position for message in messages)]
    # Move the answer out of the way first: no two messages may share a position.
    Message.objects.filter(pk=answer.pk).update(position=conversation.next_position)
    # There is one more place than messages: the last is the answer's.
    for message, place in zip(messages, places, strict=False):
        message.position = place
        message.save(update_fields=["position"])
    Message.objects.filter(pk=answer.pk).update(position=places[-1])


def move_answer_before(conversation: Conversation, run: Run, messages: Sequence[Message]) -> None:
    """Move the answer, which is the newest message, before these messages and make it their parent. `conversation` must
    be locked."""
    answer = run.answer
    places = [*(message.position for message in messages), answer.position]
    Message.objects.filter(pk=answer.pk).update(position=conversation.next_position)
    # Start with the last: each takes the place that the next one has left.
    for message, place in zip(reversed(messages), reversed(places), strict=False):
        message.position, message.parent = place, answer
        message.save(update_fields=["position", "parent"])
    answer.position = places[0]
    answer.save(update_fields=["position"])
