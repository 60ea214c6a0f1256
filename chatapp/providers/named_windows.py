"""Windows that providers name when they refuse a request, and where they apply.

A window applies at once to the model in that conversation, and to all conversations if named again in another run.
After BELIEVED_FOR without a repetition the larger window is tried again: providers change, and errors may be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from chatapp.operations.clock import iso_time

BELIEVED_FOR = timedelta(hours=24)
CONFIRMATIONS_FOR_ALL = 2
"""How often a window has to be named to apply to all conversations."""
SAME_SHARE = 0.02
"""Two numbers that differ by less are the same window, because some providers subtract what they add to a prompt."""


@dataclass(frozen=True, slots=True)
class NamedWindow:
    """`named_by` is the last refused run or compaction; repeated refusals of the same one count once."""

    tokens: int
    at: datetime
    count: int = 1
    named_by: str = ""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> NamedWindow | None:
        """Return the stored window, or None."""
        if not stored:
            return None
        at = datetime.fromisoformat(stored["at"])
        return cls(stored["tokens"], at, stored["count"], stored["named_by"])

    def write(self) -> dict[str, Any]:
        at = iso_time(self.at)
        return {"tokens": self.tokens, "at": at, "count": self.count, "named_by": self.named_by}

    def is_fresh(self, now: datetime) -> bool:
        return now - self.at < BELIEVED_FOR

    def named_again(self, again: NamedWindow) -> NamedWindow:
        """Return the state after another refusal."""
        is_same = abs(self.tokens - again.tokens) <= SAME_SHARE * self.tokens
        if not is_same or not self.is_fresh(again.at):
            return again
        counts = self.named_by != again.named_by
        return replace(again, count=self.count + counts)


def applicable_window(
    of_model: Mapping[str, Any], in_conversation: Mapping[str, Any], now: datetime
) -> int | None:
    """Return the smallest window that applies, of those stored for a model and for it in a conversation, or None."""
    everybodys, own = NamedWindow.read(of_model), NamedWindow.read(in_conversation)
    if everybodys is not None and everybodys.count < CONFIRMATIONS_FOR_ALL:
        everybodys = None
    return min((one.tokens for one in (everybodys, own) if one and one.is_fresh(now)), default=None)


def describe_named_window(stored: Mapping[str, Any], now: datetime) -> str:
    """Return a sentence for operators; empty if no window applies."""
    named = NamedWindow.read(stored)
    if named is None or not named.is_fresh(now):
        return ""
    until = f"{named.at + BELIEVED_FOR:%Y-%m-%d %H:%M} UTC"
    if named.count < CONFIRMATIONS_FOR_ALL:
        return f"In one conversation the provider reported a window of {named.tokens:,}; used there until {until}."
    return f"The provider reported a window of {named.tokens:,}, {named.count} times; used until {until}."
