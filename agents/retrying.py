"""Whether a model call that failed is worth a second one, and how long to wait before it."""

from __future__ import annotations

from agents.errors import ModelError

LONGEST_PAUSE_S = 10.0
FIRST_PAUSE_S = 1.0
PASSING = frozenset({"connection", "server", "rate_limit", "timeout"})
"""Errors that a second attempt may not meet again."""


def retry_pause(error: ModelError) -> float | None:
    """Seconds to wait before the one more attempt; None where it would not help, or not soon enough."""
    if error.category not in PASSING:
        return None
    pause_s = FIRST_PAUSE_S if error.retry_after_s is None else error.retry_after_s
    return pause_s if pause_s <= LONGEST_PAUSE_S else None
