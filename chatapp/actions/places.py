"""Places around an answer that is being written: what belongs before it takes its place, and it moves on.

Positions stay gapless. Only the answer and what was sent after it began can move; all older messages keep theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from chatapp.actions.messages import append_message
from chatapp.models import Conversation, Message, Run


@dataclass(frozen=True, slots=True)
class Belonging:
    """A message that belongs to an answer and stands before it."""

    role: str
    parts: list[dict[str, Any]]


def insert_before_answer(
    conversation: Conversation, run: Run, belongings: Sequence[Belonging], now: datetime
) -> list[Message]:
    """Their parent is the answer. `conversation` is locked."""
    answer = Message.objects.get(pk=run.answer_id)
    first, count = answer.position, len(belongings)
    behind = Message.objects.filter(conversation=conversation, position__gte=first)
    # One by one from the end: no two may share a position, not even for a moment.
    for message_id in behind.order_by("-position").values_list("pk", flat=True):
        Message.objects.filter(pk=message_id).update(position=F("position") + count)
    end = conversation.next_position
    inserted = []
    for position, belonging in enumerate(belongings, start=first):
        conversation.next_position = position
        inserted.append(
            append_message(
                conversation,
                branch=answer.branch,
                role=belonging.role,
                parent=answer,
                parts=belonging.parts,
                now=now,
            )
        )
    conversation.next_position = end + count
    conversation.save(update_fields=["next_position"])
    return inserted


def is_anything_new(answer_id: UUID, known: Collection[UUID]) -> bool:
    """Whether something stands behind the answer, or before it and the run does not know it."""
    sent = Message.objects.filter(parent=answer_id, kind=Message.Kind.INJECTED)
    is_unknown = Q(forgotten_at=None) & ~Q(pk__in=known)
    return sent.filter(Q(position__gt=F("parent__position")) | is_unknown).exists()


def unknown_messages(run: Run, known: Collection[UUID]) -> QuerySet[Message]:
    """Of what was sent during the run and not taken back, oldest first."""
    sent = Message.objects.filter(parent=run.answer_id, kind=Message.Kind.INJECTED, forgotten_at=None)
    return sent.exclude(pk__in=known).order_by("position")


def messages_behind(run: Run) -> list[Message]:
    """What the user sent while the answer was being written and no model call has seen, oldest first."""
    answer = Message.objects.get(pk=run.answer_id)
    rows = Message.objects.filter(branch=answer.branch, kind=Message.Kind.INJECTED)
    return list(rows.filter(position__gt=answer.position).order_by("position"))


def move_answer_behind(conversation: Conversation, run: Run, messages: Sequence[Message]) -> None:
    """These, which follow the answer at once, stand before it from now on. `conversation` is locked."""
    answer = Message.objects.get(pk=run.answer_id)
    last = messages[-1].position
    Message.objects.filter(pk=answer.pk).update(position=conversation.next_position)
    for message in messages:
        message.position -= 1
        message.save(update_fields=["position"])
    Message.objects.filter(pk=answer.pk).update(position=last)
