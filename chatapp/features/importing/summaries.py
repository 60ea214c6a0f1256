"""Reads and validates the summaries of our own export, with the new positions of their spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from chatapp.compaction.models import Compaction
from chatapp.features.importing.formats.palimpsest import read_usage
from chatapp.features.importing.tree import BranchedMessages, new_span
from chatapp.features.importing.values import ReadContext, SourceConversation, storable, string
from memory.bounds import MAX_ID, MAX_IMPORTED, MAX_TOKENS
from memory.strategies.registry import StrategyName

STRATEGIES = (*get_args(StrategyName), Compaction.CLEARED)
MAX_SUMMARY_CHARS = 100_000
MAX_SUMMARIES = 1_000


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of an export. `branch` is an index; `previous` is the export's id of the summary that it continues."""

    id: str
    previous: str
    branch: int
    first_position: int
    last_position: int
    columns: Mapping[str, Any]


def summaries_of(source: SourceConversation, grown: BranchedMessages, reading: ReadContext) -> list[Summary]:
    """Return the summaries, earliest span first. Leave out those that match no messages or overlap."""
    found = sorted(_readable(source, grown, reading), key=lambda each: each.last_position)
    kept: list[Summary] = []
    ends: dict[int, int] = {}
    for summary in found[:MAX_SUMMARIES]:
        if summary.first_position <= ends.get(summary.branch, -1):
            continue  # spans of one branch must not overlap
        ends[summary.branch] = summary.last_position
        kept.append(summary)
    if left := len(source.compactions) - len(kept):
        source.left_out["summaries"] += left
    return kept


def _readable(source: SourceConversation, grown: BranchedMessages, reading: ReadContext) -> Iterator[Summary]:
    branches = {name: at for at, name in enumerate(source.branches)}
    for raw in source.compactions:
        first, last = (_number(raw.get(name), MAX_ID) for name in ("first_position", "last_position"))
        strategy, summary = string(raw.get("strategy")), reading.text(string(raw.get("summary")))
        span = new_span(grown.positions, first, last) if first is not None and last is not None else None
        if span is None or strategy not in STRATEGIES or summary is None or len(summary) > MAX_SUMMARY_CHARS:
            continue
        counts = {
            name: _number(raw.get(name), most) or 0
            for name, most in (
                ("message_count", MAX_IMPORTED),
                ("kept_count", MAX_IMPORTED),
                ("tokens_before", MAX_TOKENS),
                ("tokens_after", MAX_TOKENS),
            )
        }
        columns = {
            "strategy": strategy,
            "summary": summary,
            "reminder": reading.text(string(raw.get("reminder"))) or "",
            "summary_tokens": counts["tokens_after"],
            "fallback_reason": storable(string(raw.get("fallback_reason"))[:1_000]),
            "usage": read_usage(raw.get("usage")) or {},
            "created_at": reading.moment(raw.get("created_at")),
            "finished_at": reading.moment(raw.get("finished_at")),
        }
        # If the export names no branch, use that of the last message in the span.
        branch = branches.get(string(raw.get("branch")), grown.messages[span[1]].branch)
        yield Summary(string(raw.get("id")), string(raw.get("previous")), branch, *span, columns | counts)


def _number(raw: Any, most: int) -> int | None:
    # In Python, bool is a subclass of int.
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= most else None
