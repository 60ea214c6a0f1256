"""Single messages, as a reader who is behind needs them."""

from __future__ import annotations

from dataclasses import dataclass

from chatapp import mapping
from chatapp.errors import NotFound
from chatapp.models import Message, User
from chatapp.selectors.access import parse_id


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
    return StoredText(str(row.conversation_id), mapping.text_of(row.parts), is_growing)
