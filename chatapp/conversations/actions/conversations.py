"""Creates and changes conversations, pins messages, and records when memory was paused."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypedDict, Unpack

from django.db import transaction

from agents.events import ConversationAttention, ConversationUpdated, MessagePinned
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.models import Branch, Conversation, Folder, Message
from chatapp.conversations.schemas.conversations import conversation_shape
from chatapp.conversations.schemas.messages import message_shape
from chatapp.conversations.selectors.conversations import retention_days_of, scope_for
from chatapp.long_term.models import MemoryPause
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.providers.models import ModelConfig
from chatapp.realtime import event_log
from chatapp.runs.models import Run

TITLE_CHARS = 60


class ConversationColumns(TypedDict, total=False):
    """Validated columns that a user sets or changes; missing ones keep their value or default."""

    title: str
    model: ModelConfig | None
    agent: Agent | None
    folder: Folder | None
    mode: str
    pinned: bool
    archived: bool
    temporary: bool
    memory: str
    context_policy: dict[str, Any]
    hooks: list[dict[str, Any]]


def create_conversation(*, user: User, now: datetime, **columns: Unpack[ConversationColumns]) -> Conversation:
    """Create a conversation for a request of a user."""
    with transaction.atomic():
        conversation = begin_conversation(user=user, now=now, **columns)
        # In the same transaction, so that a repeated request finds the conversation and its key, or neither.
        record_created_id(conversation.pk)
    return conversation


def begin_conversation(*, user: User, now: datetime, **columns: Unpack[ConversationColumns]) -> Conversation:
    """Create a conversation with its first branch."""
    scope = scope_for(columns.get("agent"), temporary=columns.get("temporary", False))
    with transaction.atomic():
        conversation = Conversation.objects.create(
            user=user,
            scope=scope,
            shared_in=scope.pk if scope else None,
            last_activity_at=now,
            **columns,
        )
        conversation.branch = Branch.objects.create(conversation=conversation)
        conversation.save(update_fields=["branch"])
        note_pause(user, conversation, conversation.memory == Conversation.Memory.PAUSED, now)
    return conversation


def update_conversation(
    *, user: User, conversation_id: str, now: datetime, **columns: Unpack[ConversationColumns]
) -> Conversation:
    """Change these columns and return the conversation.

    Raise Conflict for another agent if the conversation has messages and uses its agent's shared memory.
    """
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        changes: dict[str, Any] = {**columns}
        if "title" in columns:
            changes["title_made_of"] = None
        if "agent" in columns:
            changes |= _scope_with(conversation, columns["agent"])
        for name, value in changes.items():
            setattr(conversation, name, value)
        conversation.save(update_fields=list(changes))
        if "memory" in columns:
            note_pause(user, conversation, conversation.memory == Conversation.Memory.PAUSED, now)
        event_log.append(conversation, updated_event(conversation, now))
    return conversation


def mark_read(*, user: User, conversation_id: str, message_count: int, now: datetime) -> None:
    """Record that a visible page has shown the first `message_count` messages. Raise NotFound."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        # Future messages stay unread.
        shown = min(message_count, conversation.next_position)
        # Another device may have shown more.
        if shown > conversation.read_count:
            conversation.read_count = shown
            is_answering = Run.active().filter(conversation=conversation).exists()
            unread = shown < conversation.next_position and not is_answering
            event = ConversationAttention(conversation_id=str(conversation.pk), at=now, unread=unread)
            event_log.append(conversation, event, changed=["read_count"])


def _scope_with(conversation: Conversation, agent: Agent | None) -> dict[str, Any]:
    """Return the changed columns of the scope, which the first message fixes: its text is in that memory."""
    if not conversation.next_position:
        scope = scope_for(agent, temporary=conversation.temporary)
        return {"scope": scope, "shared_in": scope.pk if scope else None}
    if conversation.scope is not None and agent != conversation.scope:
        raise Conflict(
            f"This chat uses the shared memory of {conversation.scope.name}. Start a new chat to use another agent."
        )
    return {}


def copy_pauses(user: User, source: Conversation, copy: Conversation) -> None:
    """Copy the memory pauses, so that messages written during them are not learned from the copy either."""
    pauses = MemoryPause.objects.filter(user=user, conversation=source)
    store_pauses(user, copy, pauses.values_list("began_at", "ended_at"))


def store_pauses(
    user: User, conversation: Conversation, periods: Iterable[tuple[datetime, datetime | None]]
) -> None:
    """Store memory pauses (begin, end) of a new conversation, in the transaction that makes it visible."""
    MemoryPause.objects.bulk_create(
        MemoryPause(user=user, conversation=conversation, began_at=began_at, ended_at=ended_at)
        for began_at, ended_at in periods
    )


def note_pause(user: User, conversation: Conversation | None, is_paused: bool, now: datetime) -> None:
    """Begin or end a memory pause of one conversation, or of all (None), in the transaction that sets it."""
    pauses = MemoryPause.objects.filter(user=user, conversation=conversation, ended_at=None)
    if not is_paused:
        pauses.update(ended_at=now)
    elif not pauses.exists():
        MemoryPause.objects.create(user=user, conversation=conversation, began_at=now)


def updated_event(
    conversation: Conversation, now: datetime, active_run: Run | None = None, *, is_quiet: bool = False
) -> ConversationUpdated:
    """Return the event with the conversation's current state. `is_quiet`: no run is active, so none is looked up."""
    if active_run is None and not is_quiet:
        active_run = Run.active().filter(conversation=conversation).first()
    days = retention_days_of(conversation.owner_id, current("RETENTION_DAYS"))
    shape = conversation_shape(conversation, days, active_run)
    return ConversationUpdated(conversation_id=str(conversation.pk), at=now, conversation=shape)


def title_from(text: str) -> str:
    """Return the first line, cut at a word."""
    line = " ".join(text.strip().split("\n", 1)[0].split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[:TITLE_CHARS].rsplit(" ", 1)[0].rstrip(",.;:") + "…"


def pin_message(*, user: User, conversation_id: str, message_id: str, pinned: bool, now: datetime) -> Message:
    """Pin or unpin a message, and return it.

    Raise NotFound, and InvalidInput for a message of a tool loop, which alone means nothing to a model.
    """
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        message = accessible_message(user, conversation_id, message_id)
        calls_tools = any(part["type"] == "tool_call" for part in message.parts)
        if message.role not in (Message.Role.USER, Message.Role.ASSISTANT) or calls_tools:
            raise InvalidInput("Only your messages and the model's answers can be pinned.")
        if message.pinned != pinned:
            message.pinned = pinned
            message.save(update_fields=["pinned"])
            event = MessagePinned(
                conversation_id=str(conversation.pk), at=now, message=message_shape(message)
            )
            event_log.append(conversation, event)
        return message
