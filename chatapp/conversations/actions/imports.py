"""Imports conversations, in transactions of a few milliseconds each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from json.encoder import encode_basestring_ascii
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from django.db import connection, transaction
from django.db.models import Field, Model

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.conversations import message_values
from chatapp.conversations.actions.conversations import title_from
from chatapp.conversations.models import Branch, Conversation, Message
from chatapp.forgetting.actions.removals import begin_import, end_import, release_removal, renew_import
from chatapp.forgetting.models import Removal
from chatapp.operations.database.ids import new_hex_ids
from chatapp.operations.database.statements import (
    as_stored,
    execute_stored,
    insert_rows,
    table_name,
    update_row,
)
from chatapp.operations.database.work_budget import UNBOUNDED, Budget, Pace, PacedTransactions
from chatapp.operations.workers import jobs
from chatapp.recall.actions.indexing import index_conversation
from memory.tokens import MESSAGE_OVERHEAD, estimate_parts, estimate_text

INSERTED_AT_ONCE = 50
INDEXED_AT_ONCE = 5_000
"""The largest import that is indexed before it returns; a worker indexes larger ones."""


PREVIOUS = -1

Lineage = tuple[tuple[int, int], ...]
"""The visible part of a branch's ancestors, nearest first: (index of the branch, last position)."""


class ImportedMessage(NamedTuple):
    """A message whose position is its index in the sequence. `parent` is a position and `branch` an index; `columns`
    are other validated columns of the row, e.g. its parts."""

    role: str
    text: str
    created_at: datetime | None = None
    parent: int | None = PREVIOUS
    branch: int = 0
    columns: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ImportedBranches:
    """The lineage of each branch, and the index of the branch that the conversation shows."""

    lineages: Sequence[Lineage] = ((),)
    shown: int = 0


ONE_BRANCH = ImportedBranches()


class Completion(Protocol):
    def __call__(self, conversation: Conversation, *, branches: Sequence[Branch]) -> None: ...


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation to store. `columns` are other validated columns of its row. In the transaction that makes it
    visible, `check` comes first and may raise to prevent that, `came_from` returns a row to store with it, and
    `complete` writes the rest."""

    messages: Sequence[ImportedMessage]
    title: str = ""
    branches: ImportedBranches = ONE_BRANCH
    columns: Mapping[str, Any] = field(default_factory=dict)
    complete: Completion | None = None
    came_from: Callable[[Conversation], Model] | None = None
    check: Callable[[], None] | None = None


def import_conversation(
    *,
    user: User,
    messages: Sequence[ImportedMessage],
    now: datetime,
    title: str = "",
    columns: Mapping[str, Any] = MappingProxyType({}),
    complete: Completion | None = None,
    check: Callable[[], None] | None = None,
    pace: Pace = UNBOUNDED,
    index_at_once: int = INDEXED_AT_ONCE,
) -> Conversation:
    """Store a conversation of one branch as `import_in_pieces` does, and return it. A worker indexes more than
    `index_at_once` messages. No summary is planned, because most imported conversations are never continued."""
    new = NewConversation(messages, title, columns=columns, complete=complete, check=check)
    is_left = len(messages) > index_at_once
    conversation = import_in_pieces(
        user=user, new=new, now=now, turns=PacedTransactions(pace), is_left=is_left
    )
    if not is_left:
        index_conversation(conversation.pk, pace)
    return conversation


def import_in_pieces(
    *, user: User, new: NewConversation, now: datetime, turns: PacedTransactions, is_left: bool = True
) -> Conversation:
    """Store a conversation and return it. It is invisible until it is complete; a small one is stored in one
    transaction. With `is_left`, a worker will index it.

    The sweep deletes the rows of a failed import (see `Removal`).
    """
    budget = turns.pace.budget
    if _fits_at_once(new, budget):
        return import_at_once(user=user, some=[new], now=now, turns=turns, is_left=is_left)[0]
    begun = _begin(user, new, now)
    # `hold` comes first, because it may wait, which must not happen inside the transaction.
    with turns.hold(), transaction.atomic():
        _insert_begun([begun])
        # In the same transaction as its rows, so that the sweep finds them if this process dies.
        removal = begin_import(begun.conversation)
    rows = _message_rows(begun, now)
    statement = _InsertStatement(user)
    waiting: list[_MessageRow] = []
    inserted = 0
    try:
        while inserted < len(new.messages):
            waiting.extend(_take(rows, budget))  # prepared while the lock is free
            with turns.hold():
                inserted += _insert_piece(waiting, statement, removal, budget)
        with turns.hold():
            _complete_import(begun, removal, user, is_left)
    except Exception:
        release_removal(removal_id=removal.pk, now=now)
        raise
    return begun.conversation


def import_at_once(
    *,
    user: User,
    some: Sequence[NewConversation],
    now: datetime,
    turns: PacedTransactions,
    is_left: bool = True,
) -> list[Conversation]:
    """Store conversations, few enough for one transaction, and return them."""
    # Prepare the rows while the lock is free.
    begun = [_begin(user, new, now) for new in some]
    rows = [row for each in begun for row in _message_rows(each, now)]
    statement = _InsertStatement(user)
    with turns.hold(), transaction.atomic():
        _check(begun)
        _insert_begun(begun)
        for first in range(0, len(rows), INSERTED_AT_ONCE):
            statement.insert(rows[first : first + INSERTED_AT_ONCE])
        _end(begun, is_left)
    return [each.conversation for each in begun]


def _fits_at_once(new: NewConversation, budget: Budget) -> bool:
    chars = sum(len(message.text) + _chars_beside_text(message) for message in new.messages)
    return len(new.messages) <= budget.rows and chars <= budget.chars


def _chars_beside_text(message: ImportedMessage) -> int:
    """Return the length of the parts that are not in `message.text`, such as tool results."""
    parts = message.columns.get("parts", ())
    return sum(len(json.dumps(part)) for part in parts if part["type"] != "text")


@dataclass(frozen=True, slots=True)
class _Begun:
    """The unsaved rows of a conversation and its branches, with keys."""

    new: NewConversation
    conversation: Conversation
    branches: list[Branch]


def _begin(user: User, new: NewConversation, now: datetime) -> _Begun:
    count, title = len(new.messages), new.title or _first_user_line(new.messages)
    columns = {"title": title, "created_at": now, "last_activity_at": now, **new.columns}
    # Imported messages count as read.
    conversation = Conversation(user=user, next_position=count, read_count=count, **columns)
    branches = [Branch(conversation=conversation) for _ in new.branches.lineages]
    for branch, lineage in zip(branches, new.branches.lineages, strict=True):
        branch.lineage = [[str(branches[at].pk), position] for at, position in lineage]
    conversation.branch = branches[new.branches.shown]
    return _Begun(new, conversation, branches)


def _insert_begun(begun: Sequence[_Begun]) -> None:
    insert_rows([each.conversation for each in begun], is_dated=True)
    insert_rows([branch for each in begun for branch in each.branches])


def _check(begun: Sequence[_Begun]) -> None:
    for each in begun:
        if each.new.check is not None:
            each.new.check()


@transaction.atomic
def _complete_import(begun: _Begun, removal: Removal, user: User, is_left: bool) -> None:
    """Show the conversation to its user. Raise Conflict if its rows were deleted meanwhile."""
    _check([begun])
    # First, because it fails if the sweep has begun to delete the rows.
    end_import(removal)
    begun.conversation.user = user
    update_row(begun.conversation, "user")
    _end([begun], is_left)


def _end(begun: Sequence[_Begun], is_left: bool) -> None:
    """Complete imported conversations, in the transaction that stores their last messages."""
    insert_rows([each.new.came_from(each.conversation) for each in begun if each.new.came_from])
    for each in begun:
        record_created_id(each.conversation.pk)
        if each.new.complete is not None:
            each.new.complete(each.conversation, branches=each.branches)
        if is_left:
            jobs.wake_for_many("chatapp.recall.tasks.index_conversations", str(each.conversation.pk))


_OWN_COLUMNS = (
    "id",
    "conversation",
    "branch",
    "parent",
    "position",
    "role",
    "parts",
    "token_estimate",
    "model_name",
    "created_at",
)
_OTHER_COLUMNS = ("kind", "status", "pinned", "usage", "forgotten_at")
"""Columns that have their default in most messages."""
_OWN = {"parts", "model_name"}
"""The columns among _OWN_COLUMNS that a source of imports may set."""


class _MessageRow(NamedTuple):
    """The columns that differ between messages, converted for the database. `others` is None if all have defaults."""

    values: tuple[Any, ...]
    others: tuple[Any, ...] | None
    chars: int


def _message_rows(begun: _Begun, now: datetime) -> Iterator[_MessageRow]:
    home, lines = as_stored(begun.conversation.pk), [as_stored(branch.pk) for branch in begun.branches]
    messages = begun.new.messages
    keys = new_hex_ids(len(messages))
    for position, (key, message) in enumerate(zip(keys, messages, strict=True)):
        text, columns = message.text, message.columns
        above = position - 1 if message.parent == PREVIOUS else message.parent
        parent = keys[above] if above is not None and above >= 0 else None
        parts = columns.get("parts")
        if parts is None:
            # The same as json.dumps writes, but faster: nearly all messages are one text.
            stored = f'[{{"type": "text", "text": {encode_basestring_ascii(text)}}}]'
            tokens = MESSAGE_OVERHEAD + estimate_text(text)
        else:
            stored = json.dumps(parts)
            tokens = estimate_parts(message_values.parts_from_json(parts))
        said_at = as_stored(message.created_at or now)
        model_name = columns.get("model_name", "")
        branch, role = lines[message.branch], message.role
        own = (key, home, branch, parent, position, role, stored, tokens, model_name, said_at)
        others = None if not columns or columns.keys() <= _OWN else _others_of(columns)
        yield _MessageRow(own, others, len(text) + _chars_beside_text(message))


def _others_of(columns: Mapping[str, Any]) -> tuple[Any, ...]:
    fields = ((name, _message_column(name)) for name in _OTHER_COLUMNS)
    chosen = ((field, columns.get(name, field.get_default())) for name, field in fields)
    return tuple(field.get_db_prep_save(value, connection) for field, value in chosen)


def _take(rows: Iterator[_MessageRow], budget: Budget) -> Iterator[_MessageRow]:
    """Yield as many rows as one transaction may insert."""
    count = chars = 0
    while count < budget.rows and chars < budget.chars and (row := next(rows, None)) is not None:
        count, chars = count + 1, chars + row.chars
        yield row


@transaction.atomic
def _insert_piece(
    waiting: list[_MessageRow], statement: _InsertStatement, removal: Removal, budget: Budget
) -> int:
    """Insert rows in one transaction, remove them from `waiting` and return how many.

    Raise Conflict if the import was given up.
    """
    renew_import(removal)
    spending = budget.start()
    while waiting:
        # At least one row, so that the import advances on the slowest machine.
        batch = waiting[: max(1, min(INSERTED_AT_ONCE, spending.rows_left))]
        del waiting[: len(batch)]
        statement.insert(batch)
        spending.spend(len(batch), sum(row.chars for row in batch))
        if spending.is_spent:
            break
    return spending.rows


class _InsertStatement:
    """Inserts messages of one user with fixed SQL, because building statements with the ORM takes ten times as long as
    running them. Values that are the same in all rows are literals, which saves a tenth of that time."""

    def __init__(self, user: User) -> None:
        blank = Message(user=user)
        names = (*_OWN_COLUMNS, *_OTHER_COLUMNS)
        same = [column for column in Message._meta.concrete_fields if column.name not in names]
        columns = [*same, *map(_message_column, names)]
        quoted = [connection.ops.quote_name(str(column.column)) for column in columns]
        self._into = f"INSERT INTO {table_name(Message)} ({', '.join(quoted)}) VALUES "
        fixed = [_literal(column, column.pre_save(blank, True)) for column in same]
        defaults = [_literal(column, column.get_default()) for column in map(_message_column, _OTHER_COLUMNS)]
        own = [*fixed, *["%s"] * len(_OWN_COLUMNS)]
        self._plain_row = f"({', '.join([*own, *defaults])})"
        self._row = f"({', '.join([*own, *['%s'] * len(defaults)])})"

    def insert(self, rows: Sequence[_MessageRow]) -> None:
        """Insert at most INSERTED_AT_ONCE rows."""
        plain = [row.values for row in rows if row.others is None]
        self._insert(self._plain_row, plain)
        self._insert(self._row, [(*row.values, *row.others) for row in rows if row.others is not None])

    def _insert(self, row: str, some: Sequence[tuple[Any, ...]]) -> None:
        if some:
            execute_stored(self._into + ", ".join([row] * len(some)), [*chain.from_iterable(some)])


def _literal(column: Field[Any, Any], value: Any) -> str:
    """Return a value as an SQL literal. Do not use it for text of users."""
    stored = column.get_db_prep_save(value, connection)
    if stored is None or isinstance(stored, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[stored]
    # Percent signs are doubled, because the statement has parameters.
    return "'" + str(stored).replace("'", "''").replace("%", "%%") + "'"


def _message_column(name: str) -> Field[Any, Any]:
    field = Message._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def _first_user_line(messages: Sequence[ImportedMessage]) -> str:
    return next((title_from(message.text) for message in messages if message.role == "user"), "")
