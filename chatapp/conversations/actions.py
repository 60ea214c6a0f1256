"""Writes to a conversation itself: create, change, import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Field

from agents.events import ConversationUpdated, MessagePinned
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations import shapes
from chatapp.conversations.access import accessible_message, lock_conversation
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.conversations.selectors import retention_days_of, scope_for
from chatapp.forgetting.actions.removals import begin_import, end_import, release_removal, renew_import
from chatapp.forgetting.models import Removal
from chatapp.long_term.models import MemoryPause
from chatapp.operations import jobs
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.operations.ids import new_id
from chatapp.operations.work_budget import TO_THE_END, Budget, Pace
from chatapp.providers.models import ModelConfig
from chatapp.realtime import event_log
from chatapp.recall.actions.index import index_conversation
from chatapp.runs.models import Run
from memory.tokens import estimate_parts
from memory.types import TextPart

TITLE_CHARS = 60
INSERTED_AT_ONCE = 50
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
    days = retention_days_of([conversation.owner_id], settings.RETENTION_DAYS)[conversation.owner_id]
    shape = shapes.conversation_shape(conversation, days, active_run)
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
    pace: Pace = TO_THE_END,
) -> Conversation:
    """In pieces, each a transaction of a few milliseconds; nobody sees the conversation before it is complete. What is
    left of one that failed is deleted by the sweep (see `Removal`). What is too long for a context is summarised by
    the worker, and what is quickly indexed can be found at once.
    """
    if connection.in_atomic_block:
        pace = replace(pace, sleep=lambda _: None)
    conversation, removal = _begin_import(user, title or _first_user_line(messages), model, now)
    rows = _imported_rows(messages, now)
    waiting: list[_ImportedRow] = []
    inserted = 0

    def insert_some() -> bool:
        nonlocal inserted
        waiting.extend(_take(rows, pace.budget))
        inserted += _insert_piece(waiting, conversation, user, removal, pace.budget)
        return inserted == len(messages)

    try:
        pace.work(insert_some)
        _complete_import(conversation, user, removal, len(messages), now)
    except Exception:
        release_removal(removal_id=removal.pk, now=now)
        raise
    if len(messages) <= INDEXED_AT_ONCE:
        index_conversation(conversation.pk, pace)
    return conversation


@transaction.atomic
def _begin_import(
    user: User, title: str, model: ModelConfig | None, now: datetime
) -> tuple[Conversation, Removal]:
    conversation = create_conversation(user=user, now=now, title=title, model=model)
    return conversation, begin_import(conversation)


@transaction.atomic
def _complete_import(
    conversation: Conversation, user: User, removal: Removal, count: int, now: datetime
) -> None:
    """From now on it is there. Raises Conflict where its rows were deleted meanwhile."""
    end_import(removal)
    conversation.user, conversation.next_position = user, count
    conversation.save(update_fields=["user", "next_position"])
    jobs.wake_worker("chatapp.compaction.tasks.plan_compaction", str(conversation.pk))
    if count > INDEXED_AT_ONCE:
        jobs.wake_worker("chatapp.recall.tasks.index_conversation", str(conversation.pk))


_IMPORTED_COLUMNS = ("id", "parent", "position", "role", "parts", "token_estimate", "created_at")


@dataclass(frozen=True, slots=True)
class _ImportedRow:
    """The columns that differ from message to message, as the database takes them."""

    values: tuple[Any, ...]
    chars: int


def _imported_rows(messages: Sequence[ImportedMessage], now: datetime) -> Iterator[_ImportedRow]:
    fields = [_message_column(name) for name in _IMPORTED_COLUMNS]
    parent_id = None
    for position, message in enumerate(messages):
        message_id = new_id()
        parts = [{"type": "text", "text": message.text}]
        tokens = estimate_parts((TextPart(message.text),))
        values = (message_id, parent_id, position, message.role, parts, tokens, message.created_at or now)
        prepared = zip(fields, values, strict=True)
        stored = tuple(field.get_db_prep_save(value, connection) for field, value in prepared)
        yield _ImportedRow(stored, len(message.text))
        parent_id = message_id


def _take(rows: Iterator[_ImportedRow], budget: Budget) -> Iterator[_ImportedRow]:
    """As many as one transaction may insert, made ready before it begins."""
    count = chars = 0
    while count < budget.rows and chars < budget.chars and (row := next(rows, None)) is not None:
        count, chars = count + 1, chars + row.chars
        yield row


def _insert_piece(
    waiting: list[_ImportedRow], conversation: Conversation, user: User, removal: Removal, budget: Budget
) -> int:
    """Takes those that one transaction inserted off `waiting`; how many. Raises Conflict where the import was given
    up."""
    into, shared = _insert_statement(conversation=conversation, branch=conversation.branch, user=user)
    places = ", ".join(["%s"] * (len(shared) + len(_IMPORTED_COLUMNS)))
    with transaction.atomic(), connection.cursor() as cursor:
        renew_import(removal)
        spending = budget.start()
        while waiting:
            batch = waiting[: max(1, min(INSERTED_AT_ONCE, spending.rows_left))]
            del waiting[: len(batch)]
            cursor.execute(
                f"{into} VALUES {', '.join([f'({places})'] * len(batch))}",
                [value for row in batch for value in (*shared, *row.values)],
            )
            spending.spend(len(batch), sum(row.chars for row in batch))
            if spending.is_spent:
                break
    return spending.rows


def _insert_statement(**shared: Any) -> tuple[str, tuple[Any, ...]]:
    """By hand: building the ORM's statements takes ten times as long as running them."""
    blank = Message(**shared)
    same = [column for column in Message._meta.concrete_fields if column.name not in _IMPORTED_COLUMNS]
    values = tuple(field.get_db_prep_save(field.pre_save(blank, True), connection) for field in same)
    columns = [str(field.column) for field in (*same, *map(_message_column, _IMPORTED_COLUMNS))]
    names = ", ".join(connection.ops.quote_name(column) for column in columns)
    return f"INSERT INTO {connection.ops.quote_name(Message._meta.db_table)} ({names})", values


def _message_column(name: str) -> Field[Any, Any]:
    field = Message._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def _first_user_line(messages: Sequence[ImportedMessage]) -> str:
    return next((title_from(message.text) for message in messages if message.role == "user"), "")


def pin_message(*, user: User, conversation_id: str, message_id: str, pinned: bool, now: datetime) -> Message:
    """Raises NotFound, and InvalidInput for a step of a tool loop: alone it would mean nothing to a model."""
    with transaction.atomic():
        conversation = lock_conversation(user, conversation_id)
        message = accessible_message(user, conversation_id, message_id)
        if message.role not in (Message.Role.USER, Message.Role.ASSISTANT) or _calls_tools(message):
            raise InvalidInput("Only your messages and the model's answers can be pinned.")
        if message.pinned != pinned:
            message.pinned = pinned
            message.save(update_fields=["pinned"])
            shape = shapes.message_shape(message)
            event_log.append(
                conversation, MessagePinned(conversation_id=str(conversation.pk), at=now, message=shape)
            )
        return message


def _calls_tools(message: Message) -> bool:
    return any(part["type"] == "tool_call" for part in message.parts)


def note_pause(conversation: Conversation, now: datetime) -> None:
    """Called in the transaction that sets `memory` of the conversation, which it holds."""
    is_paused = conversation.memory == Conversation.Memory.PAUSED
    _note_pause(conversation.user, conversation, is_paused, now)


def _note_pause(user: User, conversation: Conversation | None, is_paused: bool, now: datetime) -> None:
    opened = MemoryPause.objects.filter(user=user, conversation=conversation, ended_at=None)
    if not is_paused:
        opened.update(ended_at=now)
    elif not opened.exists():
        MemoryPause.objects.create(user=user, conversation=conversation, began_at=now)
