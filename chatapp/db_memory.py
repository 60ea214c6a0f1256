"""Loads what a context is made of: the latest checkpoint of a branch and the messages after it.

Read-only. The cost depends on the model's window, never on how long the conversation is.
"""

from __future__ import annotations

from dataclasses import dataclass

from chatapp.mapping import checkpoint_value, message_value
from chatapp.models import Branch, Compaction, Message
from chatapp.selectors.branches import latest_checkpoint, visible_messages
from memory.types import Checkpoint
from memory.types import Message as MessageValue

PAGE = 250
MAX_MESSAGES = 5_000


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """`messages` are oldest first and end before the question. `left_out` counts those after the checkpoint
    that were not even loaded, because the newer ones fill the window already."""

    checkpoint: Checkpoint | None
    checkpoint_row: Compaction | None
    messages: tuple[MessageValue, ...]
    left_out: int

    @property
    def original_count(self) -> int:
        covered = self.checkpoint.last_position + 1 if self.checkpoint else 0
        return covered + self.left_out + len(self.messages)


def load_history(branch: Branch, *, before_position: int, window_tokens: int) -> LoadedHistory:
    """Newest first until the window is full, so that a million older messages cost nothing."""
    row = latest_checkpoint(branch)
    if row is not None and row.last_position >= before_position:
        row = None  # a question asked again before the checkpoint's end
    after = row.last_position if row else -1
    loaded: list[MessageValue] = []
    tokens, next_before = 0, before_position
    while tokens <= window_tokens and len(loaded) < MAX_MESSAGES:
        page = _page(branch, after, next_before)
        loaded += [message_value(message) for message in page]
        if len(page) < PAGE:
            return _history(row, loaded, left_out=0)
        tokens += sum(message.token_estimate for message in page)
        next_before = page[-1].position
    return _history(row, loaded, left_out=next_before - after - 1)


def _page(branch: Branch, after: int, before: int) -> list[Message]:
    """Finished messages only: an answer being written is not history yet."""
    rows = visible_messages(branch, after).filter(position__lt=before)
    rows = rows.exclude(status=Message.Status.STREAMING)
    return list(rows.order_by("-position")[:PAGE])


def _history(row: Compaction | None, newest_first: list[MessageValue], left_out: int) -> LoadedHistory:
    return LoadedHistory(
        checkpoint=checkpoint_value(row) if row else None,
        checkpoint_row=row,
        messages=tuple(reversed(newest_first)),
        left_out=left_out,
    )
