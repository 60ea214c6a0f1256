"""Loads the latest checkpoint of a branch, and the messages after it that fit into a request.

Loads once per request and only from one position on, so the cost is the same after 100 messages and after a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from chatapp.compaction.models import Compaction
from chatapp.conversations.branches import (
    cleared_upto,
    covered_count,
    usable_checkpoint,
    visible_messages,
    visible_sql,
)
from chatapp.conversations.message_values import MESSAGE_COLUMNS, MESSAGE_SQL, messages_from_columns
from chatapp.conversations.models import Branch, Message
from chatapp.operations.database.statements import execute
from memory import types
from memory.tokens import total_tokens
from memory.truncate import PINNED_SHARE
from memory.types import Checkpoint
from memory.types import Message as MessageValue
from memory.window.loading import (
    NOTHING_LEFT_OUT,
    LeftOut,
    LoadLimits,
    StoredSize,
    choose_start,
    sample_positions,
)


def checkpoint_value(row: Compaction, message_count: int) -> types.Checkpoint:
    """Return a row as a value. `message_count` counts all it covers; the row only counts what it added."""
    return types.Checkpoint(
        id=str(row.id),
        summary=row.summary,
        last_position=row.last_position,
        message_count=message_count,
        tokens=row.summary_tokens,
        reminder=row.reminder,
        covered_tokens=row.covered_tokens,
        is_extract=bool(row.fallback_reason),
        # A part of a backlog starts no cooldown, because the next part must follow at once.
        made_at=None if row.is_partial else row.finished_at,
    )


PAGE = 512
MOST_SIZES = 10_000
MAX_PINS = 50


@dataclass(frozen=True, slots=True)
class DbMemory:
    """The stored messages before a question, loaded once; implements `memory.protocols.BaseMemory`.

    Read-only, because only actions write rows. The view fitted from it says what was compacted. `left_out` are the
    messages between the checkpoint and the loaded ones, if no request could hold them.
    """

    checkpoint: Checkpoint | None
    checkpoint_row: Compaction | None
    messages: tuple[MessageValue, ...]
    left_out: LeftOut

    def get_messages(self) -> tuple[MessageValue, ...]:
        """Return messages pinned before the loaded range, then all messages from one position on, oldest first."""
        return self.messages

    def add_message(self, message: MessageValue) -> None:
        """Do nothing: this memory is read-only."""

    def clear(self) -> None:
        """Do nothing: this memory is read-only."""


def load_history(branch: Branch, *, before_position: int, budget_tokens: int, limits: LoadLimits) -> DbMemory:
    """Return all messages since the checkpoint if a request can hold them, else the newest part.

    The cost does not grow with the number of older messages. `budget_tokens` are as the model counts, `limits` are
    uncalibrated estimates.
    """
    if before_position <= 0:
        return DbMemory(None, None, (), NOTHING_LEFT_OUT)
    row = usable_checkpoint(branch, before_position=before_position, budget_tokens=budget_tokens)
    after = row.last_position if row else -1
    # Choose by sizes, so that only texts that a request can hold are read.
    start, tokens = _start_of(branch, after, before_position, limits, limits.window if row else limits.uncut)
    loaded = _messages(branch, start, before_position)
    pins = _pinned_before(branch, start, int(limits.window * PINNED_SHARE)) if start > 0 else []
    count = _count_between(branch, after, start) - sum(1 for pin in pins if (pin.position or 0) > after)
    return DbMemory(
        checkpoint=checkpoint_value(row, covered_count(branch, row)) if row else None,
        checkpoint_row=row,
        messages=(*pins, *reversed(loaded)),
        left_out=_left_out(branch, after, start, count, tokens - total_tokens(loaded)),
    )


def _start_of(branch: Branch, after: int, end: int, limits: LoadLimits, wanted: int) -> tuple[int, int]:
    """Return (first position to load, tokens scanned)."""
    sizes: list[StoredSize] = []
    tokens, page = 0, PAGE
    while tokens <= wanted and len(sizes) < MOST_SIZES:
        found = _sizes(branch, after, sizes[-1].position if sizes else end, page)
        sizes += found
        tokens += sum(size.tokens for size in found)
        if len(found) < page and tokens <= wanted:
            return after + 1, tokens
        # Enough for the missing tokens if these messages are a little smaller than the previous ones.
        page = max(PAGE, (wanted - tokens) * len(sizes) // max(1, tokens) * 9 // 8)
    return choose_start(sizes, limits), tokens


def _sizes(branch: Branch, after: int, end: int, most: int) -> list[StoredSize]:
    """Return the sizes of the messages before `end`, newest first."""
    columns = "position, token_estimate, role, kind"
    return list(map(StoredSize._make, _read_stored(columns, branch, after, end, most)))


def _count_between(branch: Branch, after: int, end: int) -> int:
    """Return how many messages the branch shows after `after` and before `end`."""
    # Positions of a conversation are gapless; some belong to other branches only if the branch has ancestors.
    if not branch.lineage or end - after <= 1:
        return end - after - 1
    return visible_messages(branch, after).filter(position__lt=end).count()


def _left_out(branch: Branch, after: int, start: int, count: int, tokens: int) -> LeftOut:
    if count <= 0:
        return NOTHING_LEFT_OUT
    # Filter by positions only: with an additional range, SQLite reads the whole range.
    sampled = visible_messages(branch).filter(position__in=sample_positions(after + 1, start - 1))
    rows = sampled.order_by("-position")
    found = messages_from_columns(list(rows.values_list(*MESSAGE_COLUMNS)))
    return LeftOut(
        count, start - 1, max(0, tokens), tuple(message for message in reversed(found) if message.parts)
    )


def _pinned_before(branch: Branch, end: int, most_tokens: int) -> list[MessageValue]:
    """Return, in order, the newest messages before `end` that the user pinned and did not clear, as many as fit; a
    pinned answer after its question."""
    newest = visible_messages(branch).filter(pinned=True, kind=Message.Kind.MESSAGE, position__lt=end)
    pins = list(newest.order_by("-position")[:MAX_PINS].values_list("position", "parent_id", "role"))
    if not pins:
        return []
    questions = [parent for _, parent, role in pins if role == Message.Role.ASSISTANT]
    wanted = Q(position__in=[position for position, _, _ in pins]) | Q(
        pk__in=questions, role=Message.Role.USER
    )
    rows = visible_messages(branch, cleared_upto(branch, end)).filter(wanted, position__lt=end)
    found = messages_from_columns(list(rows.order_by("-position").values_list(*MESSAGE_COLUMNS)))
    kept: list[MessageValue] = []
    for message in found:
        most_tokens -= message.tokens
        if most_tokens >= 0 and message.parts:
            kept.append(message)
    return kept[::-1]


def _messages(branch: Branch, start: int, end: int) -> list[MessageValue]:
    """Return the messages from `start` on, newest first."""
    messages = messages_from_columns(_read_stored(MESSAGE_SQL, branch, start - 1, end, max(0, end - start)))
    return [message for message in messages if message.parts]


def _read_stored(columns: str, branch: Branch, after: int, end: int, most: int) -> list[tuple[Any, ...]]:
    """Return rows newest first, without an answer that is still being written."""
    visible, values = visible_sql(branch, after, "position")
    sql = f"SELECT {columns} FROM chatapp_message WHERE {visible} {_COMPLETE_BETWEEN}"
    rows: list[tuple[Any, ...]] = execute(sql, *values, after, end, most).fetchall()
    return rows


_COMPLETE_BETWEEN = """
AND position > %s AND position < %s AND status <> 'streaming' ORDER BY position DESC LIMIT %s
"""
