"""Reads a user's stored responses, their items, and the metadata of conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db.models import F, Q, QuerySet

from chatapp.accounts.models import User
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.features.openai_api.models import ConversationMetadata, StoredResponse
from chatapp.features.openai_api.response_shapes import row_id
from chatapp.operations.database.access import find_row


def accessible_response(user: User, name: str) -> StoredResponse:
    """Return a response by its id. Raise NotFound."""
    # Filter by the conversation's user: it is None during deletion, while the response keeps its own.
    rows = StoredResponse.objects.filter(run__conversation__user=user)
    return find_row(rows.select_related("run__answer", "run__question", "run__model"), row_id("resp", name))


def metadata_of(conversation: Conversation) -> Mapping[str, str]:
    found = ConversationMetadata.objects.filter(pk=conversation.pk).values_list("metadata", flat=True)
    return found.first() or {}


def shown_messages(conversation: Conversation) -> QuerySet[Message]:
    """Return the messages that the conversation shows, unordered, without tool calls and forgotten messages."""
    assert conversation.branch is not None
    return _spoken_in(conversation.branch)


def messages_up_to(message: Message) -> QuerySet[Message]:
    """Return a message and those before it in its branch, filtered as in `shown_messages`."""
    return _spoken_in(message.branch).filter(position__lte=message.position)


def _spoken_in(branch: Branch) -> QuerySet[Message]:
    spoken = visible_messages(branch).exclude(role=Message.Role.TOOL)
    # The message of a tool call comes before its parent, the answer that it belongs to.
    calls = Q(role=Message.Role.ASSISTANT, parent__position__gt=F("position"))
    return spoken.filter(forgotten_at=None).exclude(calls)


def items_from(conversation: Conversation, message_id: str, count: int) -> list[Message]:
    """Return the items that were added together with the first one and still exist. Raise NotFound."""
    first = find_row(shown_messages(conversation), message_id)
    places = (first.position, first.position + count - 1)
    return list(shown_messages(conversation).filter(position__range=places).order_by("position"))


def message_of_item(conversation: Conversation, name: str) -> Message:
    """Return the message of an item. Raise NotFound."""
    return find_row(shown_messages(conversation), row_id("msg", name))


def own_message(user: User, name: str) -> Message:
    """Return the message of an item, in any of the user's conversations. Raise NotFound."""
    return find_row(_own_messages(user).select_related("branch"), row_id("msg", name))


def own_messages(user: User, ids: Iterable[UUID]) -> QuerySet[Message]:
    """Return those of these messages that exist, in any of the user's conversations."""
    return _own_messages(user).filter(pk__in=set(ids))


def _own_messages(user: User) -> QuerySet[Message]:
    rows = Message.objects.filter(conversation__user=user, forgotten_at=None)
    return rows.exclude(role=Message.Role.TOOL)
