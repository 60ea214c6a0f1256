"""Loads what a context is made of: the latest checkpoint of a branch and the messages after it.

Read-only. The cost depends on the model's window, never on how long the conversation is.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatapp.mapping import MESSAGE_COLUMNS, checkpoint_value, message_from_columns
from chatapp.models import Branch, Compaction, Message
from chatapp.selectors.branches import usable_checkpoint, visible_messages
from memory.loader import View
from memory.types import Checkpoint
from memory.types import Message as MessageValue

BLOCK = 256
MAX_BLOCKS = 40


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """`messages` are oldest first and end before the question. `left_out` counts those after the checkpoint
    that were not even loaded, because the newer ones fill the window already."""

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
    branch: Branch, *, before_position: int, window_tokens: int, budget_tokens: int
) -> LoadedHistory:
    """Newest first until the window is full, so that a million older messages cost nothing.

    `window_tokens` is the budget in uncalibrated estimates, `budget_tokens` the same as the model counts.

    Whole blocks of positions are loaded, so that the oldest loaded message, and with it the cut, stays the same
    from turn to turn.
    """
    row = usable_checkpoint(branch, before_position=before_position, budget_tokens=budget_tokens)
    after = row.last_position if row else -1
    loaded: list[MessageValue] = []
    tokens, end = 0, before_position
    for _ in range(MAX_BLOCKS):
        start = max(after + 1, (end - 1) // BLOCK * BLOCK)
        loaded += [message for message in _block(branch, start, end) if message.parts]
        end = start
        tokens = sum(message.tokens for message in loaded)
        if end <= after + 1 or tokens > window_tokens:
            break
    return LoadedHistory(
        checkpoint=checkpoint_value(row) if row else None,
        checkpoint_row=row,
        messages=tuple(reversed(loaded)),
        left_out=max(0, end - after - 1),
    )


def _block(branch: Branch, start: int, end: int) -> list[MessageValue]:
    """Newest first. Finished messages only: an answer being written is not history yet."""
    rows = visible_messages(branch, start - 1).filter(position__lt=end)
    rows = rows.exclude(status=Message.Status.STREAMING).order_by("-position")
    return [message_from_columns(columns) for columns in rows.values_list(*MESSAGE_COLUMNS)]
