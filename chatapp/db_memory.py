"""Loads what a context is made of: the latest checkpoint of a branch and the messages after it.

Read-only. The cost depends on the model's window, never on how long the conversation is.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from chatapp.mapping import MESSAGE_COLUMNS, checkpoint_value, messages_from_columns
from chatapp.models import Branch, Compaction, Message
from chatapp.selectors.branches import cleared_upto, usable_checkpoint, visible_messages
from memory.loader import View
from memory.tokens import total_tokens
from memory.truncate import PINNED_SHARE
from memory.types import Checkpoint
from memory.types import Message as MessageValue

BLOCK = 256
MAX_BLOCKS = 40
MAX_PINS = 50


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """`messages` are oldest first and end before the question: what the user pinned long ago, then all from one
    position on. `left_out` counts those after the checkpoint that were not even loaded, because the newer ones fill the
    window already."""

    checkpoint: Checkpoint | None
    checkpoint_row: Compaction | None
    messages: tuple[MessageValue, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class DbMemory:
    """What is stored, as `memory.protocols.BaseMemory`: a view that fits, its summary first.

    Read-only: every write is an action's, so that nothing is stored twice.
    """

    view: View

    @property
    def was_compacted(self) -> bool:
        return self.view.was_compacted

    @property
    def original_count(self) -> int:
        return self.view.original_count

    @property
    def compacted_count(self) -> int:
        return self.view.compacted_count

    def get_messages(self) -> tuple[MessageValue, ...]:
        """Without system prompt and question: these are the agent's."""
        frame = (message for message in (self.view.summary, self.view.reminder) if message)
        return (*frame, *self.view.history)

    def add_message(self, message: MessageValue) -> None:
        """Nothing: see above."""

    def clear(self) -> None:
        """Nothing: see above."""


def load_history(
    branch: Branch, *, before_position: int, window_tokens: int, budget_tokens: int, trigger: float = 1.0
) -> LoadedHistory:
    """Newest first until the window is full, so that a million older messages cost nothing.

    `window_tokens` is the budget in uncalibrated estimates, `budget_tokens` the same as the model counts. `trigger` is
    the share of it a view that was never compacted may take: past that all but a tail leaves, and more is of no use.

    Whole blocks of positions are loaded, so that the oldest loaded message, and with it the cut, stays the same
    from turn to turn.
    """
    row = usable_checkpoint(branch, before_position=before_position, budget_tokens=budget_tokens)
    after = row.last_position if row else -1
    wanted_tokens = window_tokens if row else int(window_tokens * trigger)
    loaded: list[MessageValue] = []
    tokens, blocks, end = 0, 0, before_position
    while end > after + 1 and tokens <= wanted_tokens and blocks < MAX_BLOCKS:
        wanted = min(_blocks_to_fill(wanted_tokens, tokens, before_position - end), MAX_BLOCKS - blocks)
        start = max(after + 1, (_block_of(end - 1) - wanted + 1) * BLOCK)
        taken = _take_blocks(_messages(branch, start, end), wanted_tokens - tokens)
        loaded += taken.messages
        tokens += taken.tokens
        blocks += wanted
        end = taken.end if taken.is_full else start
    pins = _pinned_before(branch, end, int(window_tokens * PINNED_SHARE))
    left_out = end - after - 1 - sum(1 for pin in pins if (pin.position or 0) > after)
    return LoadedHistory(
        checkpoint=checkpoint_value(row) if row else None,
        checkpoint_row=row,
        messages=(*pins, *reversed(loaded)),
        left_out=max(0, left_out),
    )


def _pinned_before(branch: Branch, end: int, most_tokens: int) -> list[MessageValue]:
    """In order: the newest of what the user pinned before `end` and did not clear, as many as fit; a pinned reply
    behind the question it answers."""
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


@dataclass(frozen=True, slots=True)
class _Taken:
    """Messages of whole blocks, newest first; `end` is where the oldest of these blocks begins."""

    messages: list[MessageValue]
    tokens: int
    end: int
    is_full: bool


def _take_blocks(messages: list[MessageValue], window_tokens: int) -> _Taken:
    """Until the window is full."""
    taken: list[MessageValue] = []
    tokens, end = 0, 0
    for block, group in itertools.groupby(messages, key=lambda message: _block_of(message.position or 0)):
        members = list(group)
        taken += members
        tokens += total_tokens(members)
        end = block * BLOCK
        if tokens > window_tokens:
            return _Taken(taken, tokens, end, is_full=True)
    return _Taken(taken, tokens, end, is_full=False)


def _block_of(position: int) -> int:
    return position // BLOCK


def _blocks_to_fill(window_tokens: int, tokens: int, positions: int) -> int:
    """How many more, if they are like what was loaded; one to begin with. More than one at once, for a query costs."""
    if not tokens:
        return 1
    return math.ceil((window_tokens - tokens) * positions / tokens / BLOCK) or 1


def _messages(branch: Branch, start: int, end: int) -> list[MessageValue]:
    """Newest first. Finished messages only: an answer being written is not history yet."""
    rows = visible_messages(branch, start - 1).filter(position__lt=end)
    rows = rows.exclude(status=Message.Status.STREAMING).order_by("-position")
    messages = messages_from_columns(_fetch(rows.values_list(*MESSAGE_COLUMNS)))
    return [message for message in messages if message.parts]


def _fetch(rows: QuerySet[Message, Any]) -> list[tuple[Any, ...]]:
    """As the database gives them: the ORM looks at each value once more."""
    sql, params = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())
