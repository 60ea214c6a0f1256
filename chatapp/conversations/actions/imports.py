"""Imports conversations, in transactions of a few milliseconds each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Field

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation, title_from
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.actions.removals import begin_import, end_import, release_removal, renew_import
from chatapp.forgetting.models import Removal
from chatapp.operations import jobs
from chatapp.operations.ids import new_id
from chatapp.operations.work_budget import TO_THE_END, Budget, Pace
from chatapp.providers.models import ModelConfig
from chatapp.recall.actions.indexing import index_conversation
from memory.tokens import estimate_parts
from memory.types import TextPart

INSERTED_AT_ONCE = 50
INDEXED_AT_ONCE = 5_000
"""Messages that can be found as soon as their import is answered; more are left to the worker."""


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
    """Store the messages in pieces and return their conversation, which nobody sees before it is complete.

    The sweep deletes what is left of an import that failed (see `Removal`). A worker summarises what is too long for
    a context.
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
    """Show the conversation to its user. Raises Conflict where its rows were deleted meanwhile."""
    end_import(removal)
    conversation.user, conversation.next_position = user, count
    conversation.save(update_fields=["user", "next_position"])
    jobs.wake_worker("chatapp.compaction.tasks.plan_compaction", str(conversation.pk))
    if count > INDEXED_AT_ONCE:
        jobs.wake_worker("chatapp.recall.tasks.index_conversation", str(conversation.pk))


_IMPORTED_COLUMNS = ("id", "parent", "position", "role", "parts", "token_estimate", "created_at")


@dataclass(frozen=True, slots=True)
class _ImportedRow:
    """The columns that differ from message to message, converted for the database."""

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
    """Yield as many rows as one transaction may insert."""
    count = chars = 0
    while count < budget.rows and chars < budget.chars and (row := next(rows, None)) is not None:
        count, chars = count + 1, chars + row.chars
        yield row


def _insert_piece(
    waiting: list[_ImportedRow], conversation: Conversation, user: User, removal: Removal, budget: Budget
) -> int:
    """Insert rows in one transaction, remove them from `waiting` and return how many they were.

    Raises Conflict where the import was given up.
    """
    into, shared = _insert_statement(conversation=conversation, branch=conversation.branch, user=user)
    placeholders = ", ".join(["%s"] * (len(shared) + len(_IMPORTED_COLUMNS)))
    with transaction.atomic(), connection.cursor() as cursor:
        renew_import(removal)
        spending = budget.start()
        while waiting:
            batch = waiting[: max(1, min(INSERTED_AT_ONCE, spending.rows_left))]
            del waiting[: len(batch)]
            cursor.execute(
                f"{into} VALUES {', '.join([f'({placeholders})'] * len(batch))}",
                [value for row in batch for value in (*shared, *row.values)],
            )
            spending.spend(len(batch), sum(row.chars for row in batch))
            if spending.is_spent:
                break
    return spending.rows


def _insert_statement(**shared: Any) -> tuple[str, tuple[Any, ...]]:
    """Return the beginning of the statement and the values that all rows share.

    Building the statements with the ORM takes ten times as long as running them.
    """
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
