"""Writes to a conversation itself: create, change, import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Field

from agents.events import ConversationUpdated
from chatapp import event_log, jobs, row_shapes
from chatapp.actions.memory_settings import note_pause
from chatapp.actions.search import index_conversation
from chatapp.errors import Conflict
from chatapp.models import Agent, Branch, Conversation, Message, ModelConfig, Run, User
from chatapp.models.identity import new_id
from chatapp.selectors.access import lock_conversation
from chatapp.selectors.retention import retention_days_of
from chatapp.selectors.scopes import scope_for
from memory.tokens import estimate_parts
from memory.types import TextPart

TITLE_CHARS = 60
INSERTED_AT_ONCE = 1_000
INDEXED_AT_ONCE = 5_000
"""Messages that can be found as soon as their import is answered; more are left to the worker."""


def create_conversation(
    *,
    user: User,
    now: datetime,
    title: str = "",
    model: ModelConfig | None = None,
    agent: Agent | None = None,
    mode: str = "",
    temporary: bool = False,
    memory: str = Conversation.Memory.ON,
    context_policy: Mapping[str, Any] | None = None,
    hooks: Sequence[Mapping[str, Any]] = (),
) -> Conversation:
    scope = scope_for(agent, temporary=temporary)
    with transaction.atomic():
        conversation = Conversation.objects.create(
            user=user,
            title=title,
            model=model,
            agent=agent,
            scope=scope,
            shared_in=scope.pk if scope else None,
            mode=mode,
            temporary=temporary,
            memory=memory,
            context_policy=dict(context_policy or {}),
            hooks=[dict(hook) for hook in hooks],
            last_activity_at=now,
        )
        conversation.branch = Branch.objects.create(conversation=conversation)
        conversation.save(update_fields=["branch"])
        note_pause(conversation, now)
    return conversation


def updated_event(
    conversation: Conversation, now: datetime, active_run: Run | None = None
) -> ConversationUpdated:
    if active_run is None:
        active_run = conversation.runs.filter(status__in=Run.ACTIVE).first()
    days = retention_days_of([conversation.user_id], settings.RETENTION_DAYS)[conversation.user_id]
    shape = row_shapes.conversation_shape(conversation, days, active_run)
    return ConversationUpdated(conversation_id=str(conversation.pk), at=now, conversation=shape)


def update_conversation(
    *, user: User, conversation_id: str, changes: Mapping[str, Any], now: datetime
) -> Conversation:
    """`changes` holds columns by name: title, model, agent, mode, pinned, archived, context_policy, hooks. Raises
    Conflict for another agent where what was said may be in the memory that this one shares."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        if "agent" in changes:
            changes = {**changes, **_scope_with(conversation, changes["agent"])}
        for name, value in changes.items():
            setattr(conversation, name, value)
        conversation.save(update_fields=list(changes))
        if "memory" in changes:
            note_pause(conversation, now)
        event_log.append(conversation, updated_event(conversation, now))
    return conversation


def _scope_with(conversation: Conversation, agent: Agent | None) -> dict[str, Any]:
    """Decided by the first message: what was said to one is neither brought to another nor taken from it."""
    if not conversation.next_position:
        scope = scope_for(agent, temporary=conversation.temporary)
        return {"scope": scope, "shared_in": scope.pk if scope else None}
    if conversation.scope is not None and agent != conversation.scope:
        raise Conflict(
            f"What is remembered here is shared by {conversation.scope.name}: begin a new chat for another agent."
        )
    return {}


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
    """One transaction however long the history; what is too long for a context is summarised by the worker, and
    what is quickly indexed can be found at once.

    The rows are made ready before it begins: on SQLite nobody else can write while it lasts.
    """
    rows = list(_imported_rows(messages, now))
    with transaction.atomic():
        conversation = create_conversation(
            user=user, now=now, title=title or _first_user_line(messages), model=model
        )
        _insert_messages(rows, conversation=conversation, branch=conversation.branch, user=user)
        conversation.next_position = len(rows)
        conversation.save(update_fields=["next_position"])
        jobs.wake_worker("plan_compaction", str(conversation.pk))
        if len(rows) > INDEXED_AT_ONCE:
            jobs.wake_worker("index_conversation", str(conversation.pk))
    if len(rows) <= INDEXED_AT_ONCE:
        index_conversation(conversation.pk)
    return conversation


_IMPORTED_COLUMNS = ("id", "parent", "position", "role", "parts", "token_estimate", "created_at")


def _imported_rows(messages: Sequence[ImportedMessage], now: datetime) -> Iterator[tuple[Any, ...]]:
    """The columns that differ from message to message, as the database takes them."""
    fields = [_message_column(name) for name in _IMPORTED_COLUMNS]
    parent_id = None
    for position, message in enumerate(messages):
        message_id = new_id()
        parts = [{"type": "text", "text": message.text}]
        tokens = estimate_parts((TextPart(message.text),))
        values = (message_id, parent_id, position, message.role, parts, tokens, message.created_at or now)
        prepared = zip(fields, values, strict=True)
        yield tuple(field.get_db_prep_save(value, connection) for field, value in prepared)
        parent_id = message_id


def _insert_messages(rows: Sequence[tuple[Any, ...]], **shared: Any) -> None:
    """By hand: building the ORM's statements takes ten times as long as running them."""
    blank = Message(**shared)
    same = [column for column in Message._meta.concrete_fields if column.name not in _IMPORTED_COLUMNS]
    values = tuple(field.get_db_prep_save(field.pre_save(blank, True), connection) for field in same)
    columns = [str(field.column) for field in (*same, *map(_message_column, _IMPORTED_COLUMNS))]
    names = ", ".join(connection.ops.quote_name(column) for column in columns)
    table, places = connection.ops.quote_name(Message._meta.db_table), ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        for start in range(0, len(rows), INSERTED_AT_ONCE):
            batch = rows[start : start + INSERTED_AT_ONCE]
            cursor.execute(
                f"INSERT INTO {table} ({names}) VALUES {', '.join([f'({places})'] * len(batch))}",
                [value for row in batch for value in (*values, *row)],
            )


def _message_column(name: str) -> Field[Any, Any]:
    field = Message._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def _first_user_line(messages: Sequence[ImportedMessage]) -> str:
    return next((title_from(message.text) for message in messages if message.role == "user"), "")
