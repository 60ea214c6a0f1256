"""Imports conversations, in transactions of a few milliseconds each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Field

from chatapp.accounts.idempotency_keys import record_made
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.actions.conversations import begin_conversation, title_from
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.forgetting.actions.removals import begin_import, end_import, release_removal, renew_import
from chatapp.forgetting.models import Removal
from chatapp.operations import jobs
from chatapp.operations.ids import new_id
from chatapp.operations.work_budget import TO_THE_END, Budget, Pace
from chatapp.providers.models import ModelConfig
from chatapp.recall.actions.indexing import index_conversation
from memory.tokens import estimate_parts

INSERTED_AT_ONCE = 50
INDEXED_AT_ONCE = 5_000
"""Messages that can be found as soon as their import is answered; more are left to the worker."""


PREVIOUS = -1

Lineage = tuple[tuple[int, int], ...]
"""What a branch shows of its ancestors, nearest first: (index of the branch, last position)."""


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """A message whose position is its place in the sequence. `parent` is a position, and `branch` an index;
    `columns` are others of the row, its parts for example, checked."""

    role: str
    text: str
    created_at: datetime | None = None
    parent: int | None = PREVIOUS
    branch: int = 0
    columns: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportedBranches:
    """The lineage of each branch, and the index of the one that the conversation shows."""

    lineages: Sequence[Lineage] = ((),)
    shown: int = 0


ONE_BRANCH = ImportedBranches()


class Completion(Protocol):
    def __call__(self, conversation: Conversation, *, branches: Sequence[Branch]) -> None: ...


def import_conversation(
    *,
    user: User,
    messages: Sequence[ImportedMessage],
    now: datetime,
    title: str = "",
    model: ModelConfig | None = None,
    pace: Pace = TO_THE_END,
    branches: ImportedBranches = ONE_BRANCH,
    complete: Completion | None = None,
    index_at_once: int = INDEXED_AT_ONCE,
) -> Conversation:
    """Store the messages in pieces and return their conversation, which nobody sees before it is complete. What fits in
    one piece is stored in one transaction.

    `complete` writes what belongs to it in the transaction that shows it. The sweep deletes what is left of an import
    that failed (see `Removal`). More than `index_at_once` messages are left to the worker to index. No summary is
    planned: most of what is brought along is never continued.
    """
    if connection.in_atomic_block:
        pace = replace(pace, sleep=lambda _: None)
    title = title or _first_user_line(messages)
    is_left = len(messages) > index_at_once
    if fits_at_once(messages, pace.budget):
        conversation = _import_at_once(user, messages, title, model, branches, now, complete, is_left)
        if not is_left:
            index_conversation(conversation.pk, pace)
        return conversation
    conversation, removal, stored = _begin_import(user, title, model, branches, now)
    rows = _imported_rows(messages, stored, now)
    waiting: list[_ImportedRow] = []
    inserted = 0

    def insert_some() -> bool:
        nonlocal inserted
        waiting.extend(_take(rows, pace.budget))
        inserted += _insert_piece(waiting, conversation, user, removal, pace.budget)
        return inserted == len(messages)

    try:
        pace.work(insert_some)
        finish = partial(complete, branches=stored) if complete else None
        _complete_import(conversation, user, removal, len(messages), finish, is_left)
    except Exception:
        release_removal(removal_id=removal.pk, now=now)
        raise
    if not is_left:
        index_conversation(conversation.pk, pace)
    return conversation


def fits_at_once(messages: Sequence[ImportedMessage], budget: Budget) -> bool:
    """Return whether one transaction may insert all of them."""
    return len(messages) <= budget.rows and sum(len(each.text) for each in messages) <= budget.chars


@transaction.atomic
def _import_at_once(
    user: User,
    messages: Sequence[ImportedMessage],
    title: str,
    model: ModelConfig | None,
    branches: ImportedBranches,
    now: datetime,
    complete: Completion | None,
    is_indexed_later: bool,
) -> Conversation:
    conversation, stored = _begin(user, title, model, branches, now)
    into, shared = _insert_statement(conversation=conversation, user=user)
    rows = list(_imported_rows(messages, stored, now))
    with connection.cursor() as cursor:
        for first in range(0, len(rows), INSERTED_AT_ONCE):
            _insert(cursor, into, shared, rows[first : first + INSERTED_AT_ONCE])
    finish = partial(complete, branches=stored) if complete else None
    _show(conversation, user, len(messages), finish, is_indexed_later)
    return conversation


@transaction.atomic
def _begin_import(
    user: User, title: str, model: ModelConfig | None, branches: ImportedBranches, now: datetime
) -> tuple[Conversation, Removal, list[Branch]]:
    conversation, stored = _begin(user, title, model, branches, now)
    return conversation, begin_import(conversation), stored


def _begin(
    user: User, title: str, model: ModelConfig | None, branches: ImportedBranches, now: datetime
) -> tuple[Conversation, list[Branch]]:
    conversation = begin_conversation(user=user, now=now, title=title, model=model)
    first = conversation.branch
    assert first is not None
    stored = [first, *(Branch(conversation=conversation) for _ in branches.lineages[1:])]
    for branch, lineage in zip(stored, branches.lineages, strict=True):
        branch.lineage = [[str(stored[at].pk), position] for at, position in lineage]
    if first.lineage:
        first.save(update_fields=["lineage"])
    Branch.objects.bulk_create(stored[1:])
    conversation.branch = stored[branches.shown]
    return conversation, stored


@transaction.atomic
def _complete_import(
    conversation: Conversation,
    user: User,
    removal: Removal,
    count: int,
    complete: Callable[[Conversation], None] | None,
    is_indexed_later: bool,
) -> None:
    """Show the conversation to its user. Raises Conflict where its rows were deleted meanwhile."""
    end_import(removal)
    _show(conversation, user, count, complete, is_indexed_later)


def _show(
    conversation: Conversation,
    user: User,
    count: int,
    complete: Callable[[Conversation], None] | None,
    is_indexed_later: bool,
) -> None:
    """In the transaction that stores the last of the messages."""
    conversation.user, conversation.next_position, conversation.read_count = user, count, count
    conversation.save(update_fields=["user", "next_position", "read_count", "branch"])
    record_made(conversation.pk)
    if complete is not None:
        complete(conversation)
    if is_indexed_later:
        jobs.wake_worker("chatapp.recall.tasks.index_conversation", str(conversation.pk))


_IMPORTED_COLUMNS = (
    "id",
    "parent",
    "position",
    "role",
    "parts",
    "token_estimate",
    "created_at",
    "branch",
    "kind",
    "status",
    "pinned",
    "model_name",
    "usage",
    "forgotten_at",
)


@dataclass(frozen=True, slots=True)
class _ImportedRow:
    """The columns that differ from message to message, converted for the database."""

    values: tuple[Any, ...]
    chars: int


def _imported_rows(
    messages: Sequence[ImportedMessage], branches: Sequence[Branch], now: datetime
) -> Iterator[_ImportedRow]:
    operations = connection.ops
    defaults = {
        name: _message_column(name).get_db_prep_save(value, connection) for name, value in _CHANGED.items()
    }
    is_hex = connection.vendor == "sqlite"  # which has no type for UUIDs

    def as_stored(key: UUID | None) -> Any:
        return key.hex if key is not None and is_hex else key

    ids: list[UUID] = []
    for position, message in enumerate(messages):
        at = position - 1 if message.parent == PREVIOUS else message.parent
        parent_id = None if at is None or at < 0 else ids[at]
        ids.append(new_id())
        parts = message.columns.get("parts")
        if parts is None:
            parts = [{"type": "text", "text": message.text}]
        tokens = estimate_parts(message_values.parts_from_json(parts))
        own_id, above, branch_id = map(as_stored, (ids[-1], parent_id, branches[message.branch].pk))
        own = (own_id, above, position, message.role, operations.adapt_json_value(parts, None), tokens)
        others = (
            defaults[name]
            if name not in message.columns
            else _message_column(name).get_db_prep_save(message.columns[name], connection)
            for name in _CHANGED
        )
        said_at = operations.adapt_datetimefield_value(message.created_at or now)
        yield _ImportedRow((*own, said_at, branch_id, *others), len(message.text))


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
    into, shared = _insert_statement(conversation=conversation, user=user)
    with transaction.atomic(), connection.cursor() as cursor:
        renew_import(removal)
        spending = budget.start()
        while waiting:
            batch = waiting[: max(1, min(INSERTED_AT_ONCE, spending.rows_left))]
            del waiting[: len(batch)]
            _insert(cursor, into, shared, batch)
            spending.spend(len(batch), sum(row.chars for row in batch))
            if spending.is_spent:
                break
    return spending.rows


def _insert(cursor: CursorWrapper, into: str, shared: tuple[Any, ...], batch: Sequence[_ImportedRow]) -> None:
    placeholders = ", ".join(["%s"] * (len(shared) + len(_IMPORTED_COLUMNS)))
    cursor.execute(
        f"{into} VALUES {', '.join([f'({placeholders})'] * len(batch))}",
        [value for row in batch for value in (*shared, *row.values)],
    )


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


_CHANGED = {name: _message_column(name).get_default() for name in _IMPORTED_COLUMNS[8:]}
"""The columns that most messages have the default of."""


def _first_user_line(messages: Sequence[ImportedMessage]) -> str:
    return next((title_from(message.text) for message in messages if message.role == "user"), "")
