"""Writes to a conversation itself: create, change, import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from agents.events import ConversationUpdated
from chatapp import event_log, jobs, mapping
from chatapp.models import Branch, Conversation, Message, ModelConfig, Run, User
from chatapp.selectors.access import lock_conversation
from memory.tokens import estimate_parts
from memory.types import TextPart

TITLE_CHARS = 60
IMPORT_BATCH = 2_000


def create_conversation(
    *,
    user: User,
    now: datetime,
    title: str = "",
    model: ModelConfig | None = None,
    temporary: bool = False,
    context_policy: Mapping[str, Any] | None = None,
) -> Conversation:
    with transaction.atomic():
        conversation = Conversation.objects.create(
            user=user,
            title=title,
            model=model,
            temporary=temporary,
            context_policy=dict(context_policy or {}),
            last_activity_at=now,
        )
        conversation.branch = Branch.objects.create(conversation=conversation)
        conversation.save(update_fields=["branch"])
    return conversation


def updated_event(
    conversation: Conversation, now: datetime, active_run: Run | None = None
) -> ConversationUpdated:
    if active_run is None:
        active_run = conversation.runs.filter(status__in=Run.ACTIVE).first()
    shape = mapping.conversation_shape(conversation, settings.RETENTION_DAYS, active_run)
    return ConversationUpdated(conversation_id=str(conversation.pk), at=now, conversation=shape)


def update_conversation(
    *, user: User, conversation_id: str, changes: Mapping[str, Any], now: datetime
) -> Conversation:
    """`changes` holds columns by name: title, model, pinned, archived, context_policy."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        for name, value in changes.items():
            setattr(conversation, name, value)
        conversation.save(update_fields=list(changes))
        event_log.append(conversation, updated_event(conversation, now))
    return conversation


def title_from(text: str) -> str:
    """The first line, cut at a word."""
    line = " ".join(text.strip().split("\n", 1)[0].split())
    if len(line) <= TITLE_CHARS:
        return line
    return line[:TITLE_CHARS].rsplit(" ", 1)[0].rstrip(",.;:") + "…"


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    role: str
    text: str
    created_at: datetime | None = None


def import_conversation(
    *,
    user: User,
    messages: Sequence[ImportedMessage],
    now: datetime,
    title: str = "",
    model: ModelConfig | None = None,
) -> Conversation:
    """One transaction however long the history; what is too long for a context is summarised by the worker."""
    rows = [_imported_row(message, position, user, now) for position, message in enumerate(messages)]
    with transaction.atomic():
        conversation = create_conversation(
            user=user, now=now, title=title or _first_user_line(messages), model=model
        )
        _insert_messages(conversation, rows)
        conversation.next_position = len(rows)
        conversation.save(update_fields=["next_position"])
        jobs.wake_worker("index_conversation", str(conversation.pk))
        jobs.wake_worker("plan_compaction", str(conversation.pk))
    return conversation


def _imported_row(message: ImportedMessage, position: int, user: User, now: datetime) -> Message:
    return Message(
        user=user,
        position=position,
        role=message.role,
        parts=[{"type": "text", "text": message.text}],
        token_estimate=estimate_parts((TextPart(message.text),)),
        created_at=message.created_at or now,
    )


def _insert_messages(conversation: Conversation, rows: Iterable[Message]) -> None:
    parent: Message | None = None
    for row in (rows := list(rows)):
        row.conversation = conversation
        row.branch_id = conversation.branch_id  # type: ignore[assignment]  # made with its conversation
        row.parent_id = parent.pk if parent else None
        parent = row
    Message.objects.bulk_create(rows, batch_size=IMPORT_BATCH)


def _first_user_line(messages: Sequence[ImportedMessage]) -> str:
    return next((title_from(message.text) for message in messages if message.role == "user"), "")
