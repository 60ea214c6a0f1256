"""Reads what a new chat begins with."""

from __future__ import annotations

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_message
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Conversation, Message
from chatapp.conversations.selectors.messages import SPOKEN


def messages_up_to(user: User, source: Conversation, message_id: str | None) -> list[Message]:
    """Return what was said up to a message in its branch, in order; None: all that the conversation shows. Raises
    NotFound."""
    branch, last = source.branch, None
    if message_id is not None:
        last = accessible_message(user, source.pk, message_id)
        branch = last.branch
    assert branch is not None
    rows = visible_messages(branch).filter(role__in=SPOKEN).exclude(status=Message.Status.STREAMING)
    if last is not None:
        rows = rows.filter(position__lte=last.position)
    return list(rows.order_by("position"))
