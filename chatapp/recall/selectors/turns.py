"""Reads what was said, for tools: around a message, and in the line of a run."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.db.models import QuerySet

from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Message
from chatapp.operations.access import parse_id
from chatapp.operations.errors import NotFound
from chatapp.runs.models import Run

SPOKEN = (Message.Role.USER, Message.Role.ASSISTANT)


def messages_around(
    user_id: UUID | str, message_id: str, around: int, *, own_conversation: UUID | str | None = None
) -> list[Message]:
    """Oldest first, in the line of this message. Raises NotFound, also for another's and for temporary conversations,
    but for `own_conversation`."""
    rows = Message.objects.select_related("branch", "conversation").filter(
        conversation__user_id=parse_id(user_id)
    )
    middle = rows.filter(pk=parse_id(message_id)).first()
    if middle is None or (
        middle.conversation.temporary and str(middle.conversation_id) != str(own_conversation)
    ):
        raise NotFound("There is no such message.")
    spoken = visible_messages(middle.branch).filter(role__in=SPOKEN)
    before = spoken.filter(position__lte=middle.position).order_by("-position")[: around + 1]
    after = spoken.filter(position__gt=middle.position).order_by("position")[:around]
    return [*reversed(before), *after]


def run_line(user_id: UUID | str, run_id: str) -> QuerySet[Message]:
    """What was said before the answer of this run, newest first. Raises NotFound."""
    runs = Run.objects.select_related("answer__branch").filter(conversation__user_id=parse_id(user_id))
    run = runs.filter(pk=parse_id(run_id)).first()
    if run is None:
        raise NotFound("There is no such run.")
    line = visible_messages(run.answer.branch).filter(role__in=SPOKEN, position__lt=run.answer.position)
    return line.order_by("-position")


def line_parts(line: QuerySet[Message]) -> Iterator[Message]:
    return line.only("id", "role", "parts", "position", "created_at").iterator(chunk_size=500)
