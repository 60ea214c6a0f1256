"""What can go wrong with a model call, by what the user can do about it."""

from __future__ import annotations

from typing import Literal

ModelErrorCategory = Literal[
    "auth",  # key missing, wrong or without rights
    "not_found",  # no such model or address
    "rate_limit",  # too many requests or tokens a minute
    "quota",  # the account has no money or budget left
    "overflow",  # the request is larger than the model's window
    "bad_request",  # the provider refuses the request for another reason
    "server",  # the provider failed (5xx)
    "timeout",  # no answer in time
    "stalled",  # the stream began and then stood still
    "cut",  # the stream ended before the answer was finished
    "bad_response",  # not what the protocol promises: broken JSON, HTML, nothing
    "connection",  # the address does not answer
    "content_filter",  # the provider's filter took the answer away
    "bound",  # the model wrote more than we take in one answer
]


class ModelError(Exception):
    """`message` is one sentence for the user; `detail` is the provider's own words, for the curious."""

    def __init__(
        self,
        category: ModelErrorCategory,
        message: str,
        *,
        detail: str = "",
        status: int | None = None,
        retry_after_s: float | None = None,
        window_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.category: ModelErrorCategory = category
        self.message = message
        self.detail = detail
        self.status = status
        self.retry_after_s = retry_after_s
        self.window_tokens = window_tokens


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
