"""Strategy `summarize` (Digitorn): the answer waits for the summary of what leaves the context."""

from __future__ import annotations

from memory.strategies.checkpoint import CheckpointStrategy


class SummarizeStrategy(CheckpointStrategy):
    waits_for_summary: bool = True
