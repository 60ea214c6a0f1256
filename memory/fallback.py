"""The summary that needs no model: the one before, and the facts of what leaves now."""

from __future__ import annotations

from collections.abc import Sequence

from memory.extractive import THOROUGH, SourceLimits, extract_summary
from memory.summary import EARLIER_TRUNCATED, bounded_summary
from memory.tokens import estimate_text
from memory.types import Message

PREVIOUS_SHARE = 2 / 3
"""What the summary before may keep of the room when both need more."""


def write_extract(
    previous: str, messages: Sequence[Message], max_tokens: int, limits: SourceLimits = THOROUGH
) -> str:
    """At most `max_tokens`; the mark of a truncation where nothing else fits or is there to tell."""
    kept = bounded_summary(previous, int(max_tokens * PREVIOUS_SHARE) if messages else max_tokens)
    room = max_tokens - estimate_text(kept) - 2
    extract = extract_summary(messages, room, limits) if messages else ""
    return f"{kept}\n\n{extract}".strip() or EARLIER_TRUNCATED
