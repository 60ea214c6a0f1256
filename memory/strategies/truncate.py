"""Strategy `truncate` (Digitorn): messages leave with a mark in their place, without a model call."""

from __future__ import annotations

from collections.abc import Sequence

from memory.strategies.checkpoint import CheckpointStrategy
from memory.summaries.summary import (
    FRAME_TOKENS,
    MARKER_TOKENS,
    bounded_summary,
    mark_truncated,
    summary_message,
)
from memory.types import Message


class TruncateStrategy(CheckpointStrategy):
    writes_summaries: bool = False

    def summary_cap(self, cap: int, summary_tokens: int) -> int:
        return min(cap, summary_tokens + FRAME_TOKENS if summary_tokens else MARKER_TOKENS)

    def stand_in(self, previous: str, messages: Sequence[Message], max_tokens: int) -> Message:
        return summary_message(mark_truncated(bounded_summary(previous, max_tokens - MARKER_TOKENS)))

    def draft(self, previous: str, messages: Sequence[Message], max_tokens: int) -> str:
        # The summary of an earlier strategy stays whole, and nothing is added that could displace it.
        return mark_truncated(previous)

    def divider_text(self, message_count: int) -> str:
        return f"Earlier context ({message_count} messages) was left out without a summary."
