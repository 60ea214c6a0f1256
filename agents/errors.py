"""Categorise errors of model calls by what the user can do about them, and decide which are worth a retry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

ModelErrorCategory = Literal[
    "auth",  # key missing, wrong or without permission
    "not_found",  # no such model or address
    "rate_limit",  # too many requests or tokens a minute
    "quota",  # the account has no money or budget left
    "budget",  # the spending budget is used up; the model was not called
    "overflow",  # the request is larger than the model's window
    "bad_request",  # the provider refuses the request for another reason
    "server",  # the provider failed (5xx)
    "timeout",  # no answer in time
    "stalled",  # the stream began and then stalled
    "cut",  # the stream ended before the answer was finished
    "bad_response",  # violates the protocol: broken JSON, HTML, an empty response
    "connection",  # the address does not respond
    "content_filter",  # the provider's filter blocked the answer
    "bound",  # the model wrote more than we accept in one answer
]

MAX_PAUSE_S = 10.0
FIRST_PAUSE_S = 1.0
RETRYABLE = frozenset({"connection", "server", "rate_limit", "timeout"})
"""Errors that may not occur again at the next attempt."""
PASSING = RETRYABLE | {"auth", "quota", "budget", "not_found", "stalled", "cut"}
"""Errors that may be gone some hours later, once an operator has fixed the cause."""
FALLEN_SILENT = frozenset({"timeout", "stalled", "cut"})
"""Errors of calls that the provider accepted: it read the request, and may charge for it."""
OVERLOADED = frozenset({503, 529})
"""HTTP statuses of an overloaded server: a second retry, after a longer pause, often succeeds."""
MAX_RETRIES = 2


class ModelError(Exception):
    """A model call that failed.

    `message` is one sentence for the user, `detail` a fact of ours that the user may read, too. `provider_words` is the
    provider's own text, redacted by `error_mapping`: for logs and operators, never for users.
    """

    def __init__(
        self,
        category: ModelErrorCategory,
        message: str,
        *,
        detail: str = "",
        provider_words: str = "",
        status: int | None = None,
        retry_after_s: float | None = None,
        window_tokens: int | None = None,
    ) -> None:
        super().__init__(message)
        self.category: ModelErrorCategory = category
        self.message = message
        self.detail = detail
        self.provider_words = provider_words
        self.status = status
        self.retry_after_s = retry_after_s
        self.window_tokens = window_tokens


def was_refused(error: ModelError) -> bool:
    """Return whether the provider rejected the request without working on it."""
    return error.status is not None or error.category not in FALLEN_SILENT


def retry_pause(error: ModelError, earlier: Sequence[ModelError] = ()) -> float | None:
    """Return the seconds to wait before the next attempt, or None if another attempt would not help.

    `earlier` are the errors that were retried before. A call is made three times at most, with one retry for each
    category; only an overloaded server may get both retries. Each pause is twice as long as the one before. A provider
    that asks for a longer pause than MAX_PAUSE_S is not called again.
    """
    if error.category not in RETRYABLE or len(earlier) >= MAX_RETRIES:
        return None
    if error.status not in OVERLOADED and error.category in {before.category for before in earlier}:
        return None
    pause_s = FIRST_PAUSE_S * 2 ** len(earlier) if error.retry_after_s is None else error.retry_after_s
    return pause_s if pause_s <= MAX_PAUSE_S else None
