"""Copies a conversation, up to one of its messages, into a new one of the same user."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from chatapp.accounts.models import User
from chatapp.conversations.access import accessible_conversation, accessible_message
from chatapp.conversations.actions.conversations import copy_pauses
from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
from chatapp.conversations.branches import visible_messages
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.conversations.selectors.messages import SPOKEN
from chatapp.files.actions import link_to_messages
from chatapp.files.models import Attachment
from chatapp.forgetting.selectors.forgotten import check_nothing_is_being_forgotten
from chatapp.operations.database.forgetting_counts import (
    check_forgetting_count,
    read_forgetting_count,
    until_nothing_is_forgotten,
)

SAID = ("text", "image", "file")
FILES = ("image", "file")
KEPT = [
    "model",
    "agent",
    "folder",
    "scope",
    "shared_in",
    "mode",
    "temporary",
    "memory",
    "context_policy",
    "hooks",
]
"""Columns that the new conversation copies. It also keeps the title."""


def fork_conversation(
    *, user: User, source_id: str | UUID, message_id: str | None, now: datetime
) -> Conversation:
    """Store a copy of a conversation up to a message, with the same settings, and return it. `message_id` None copies
    all messages shown. Raise NotFound, and ReadForgotten if its user keeps forgetting meanwhile."""
    return until_nothing_is_forgotten(partial(_copy_conversation, user, source_id, message_id, now))


def _copy_conversation(
    user: User, source_id: str | UUID, message_id: str | None, now: datetime
) -> Conversation:
    """Copy the conversation and return the copy. Raise ReadForgotten if something was forgotten meanwhile."""
    forgetting_keys = accessible_conversation(user, source_id).forgetting_keys
    forgotten_count = read_forgetting_count(forgetting_keys)
    check_nothing_is_being_forgotten(user.pk)
    # Read the conversation after the count: its title, too, may contain what is being forgotten right now.
    source = accessible_conversation(user, source_id)
    messages = _messages_up_to(user, source, message_id)
    shown = [(message, parts) for message in messages if (parts := _said(message))]
    # A model's title derives from these messages, and is forgotten with them.
    made_of = None if source.title_made_of is None else max(0, len(shown) - 1)
    # Store it like an import: in short transactions, and shown once it is complete.
    return import_conversation(
        user=user,
        messages=[_copied(message, parts) for message, parts in shown],
        now=now,
        title=source.title,
        columns={name: getattr(source, name) for name in KEPT} | {"title_made_of": made_of},
        check=partial(check_forgetting_count, forgetting_keys, forgotten_count),
        complete=partial(_complete, user=user, source=source, shown=[parts for _, parts in shown]),
    )


def _messages_up_to(user: User, source: Conversation, message_id: str | None) -> QuerySet[Message]:
    branch, last = source.branch, None
    if message_id is not None:
        last = accessible_message(user, source.pk, message_id)
        # The message may be in a branch that the conversation does not show at present.
        branch = last.branch
    assert branch is not None
    # Skip an answer that is still being written: no run would finish the copy.
    rows = visible_messages(branch).filter(role__in=SPOKEN).exclude(status=Message.Status.STREAMING)
    if last is not None:
        rows = rows.filter(position__lte=last.position)
    return rows.order_by("position")


def _said(message: Message) -> list[dict[str, Any]]:
    """Return the spoken parts; none if the message only calls tools or was forgotten."""
    return [part for part in message.parts if part["type"] in SAID]


def _copied(message: Message, parts: list[dict[str, Any]]) -> ImportedMessage:
    is_edited = message.kind == Message.Kind.EDITED
    columns = {
        "parts": parts,
        "kind": message.kind if is_edited else Message.Kind.MESSAGE,
        "status": message.status,
        "pinned": message.pinned and message.kind != Message.Kind.INJECTED,
        "model_name": message.model_name,
    }
    return ImportedMessage(message.role, text_of(parts), message.created_at, columns=columns)


def _complete(
    conversation: Conversation,
    *,
    branches: Sequence[Branch],
    user: User,
    source: Conversation,
    shown: Sequence[Sequence[dict[str, Any]]],
) -> None:
    """Store the memory pauses and files of the new conversation, in the transaction that makes it visible."""
    copy_pauses(user, source, conversation)
    _link_files(user, conversation, shown)


def _link_files(user: User, conversation: Conversation, shown: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Link the files to the new messages, so that they survive when the old messages are forgotten."""
    of_position = {
        position: {UUID(part["file_id"]) for part in parts if part["type"] in FILES}
        for position, parts in enumerate(shown)
    }
    wanted = {file_id for ids in of_position.values() for file_id in ids}
    if not wanted:
        return
    # A file may have been deleted while the messages were copied.
    known = set(Attachment.objects.filter(user=user, pk__in=wanted).values_list("pk", flat=True))
    # Positions in the copy start at 0, so they are indexes into `shown`.
    link_to_messages(conversation, {position: ids & known for position, ids in of_position.items()})
