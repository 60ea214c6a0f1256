"""Single messages: as a reader who is behind needs them, and whether a model has seen them."""

from __future__ import annotations

from dataclasses import dataclass

from chatapp import mapping
from chatapp.errors import NotFound
from chatapp.models import Message, Run, User
from chatapp.selectors.access import parse_id
from chatapp.selectors.pieces import with_stored_pieces


@dataclass(frozen=True, slots=True)
class StoredText:
    conversation_id: str
    text: str
    is_growing: bool


def stored_answer_text(user: User, message_id: str) -> StoredText:
    row = Message.objects.filter(pk=parse_id(message_id), conversation__user=user).first()
    if row is None:
        raise NotFound()
    is_growing = row.status == Message.Status.STREAMING
    with_stored_pieces([row])
    return StoredText(str(row.conversation_id), mapping.text_of(row.parts), is_growing)


def is_queued(message: Message) -> bool:
    """Whether it was sent into the run that is going on, and no model call has seen it."""
    if message.kind != Message.Kind.INJECTED or message.forgotten_at is not None:
        return False
    runs = Run.objects.filter(conversation=message.conversation_id, status__in=Run.ACTIVE)
    return runs.filter(answer__branch=message.branch_id, answer__position__lt=message.position).exists()
