"""Errors of model calls by what the user can do about them, and which are worth another try."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

ModelErrorCategory = Literal[
    "auth",  # key missing, wrong or without rights
    "not_found",  # no such model or address
    "rate_limit",  # too many requests or tokens a minute
    "quota",  # the account has no money or budget left
    "budget",  # what operators allow is used up; the model was not asked
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

MAX_PAUSE_S = 10.0
FIRST_PAUSE_S = 1.0
RETRYABLE = frozenset({"connection", "server", "rate_limit", "timeout"})
"""Categories that may be gone at the next attempt."""
PASSING = RETRYABLE | {"auth", "quota", "budget", "not_found", "stalled", "cut"}
"""Categories that may be gone some hours later, when an operator has mended what was wrong."""
FALLEN_SILENT = frozenset({"timeout", "stalled", "cut"})
"""Categories of a call that the provider took on: it read the request, and may charge for that."""
OVERLOADED = frozenset({503, 529})
"""HTTP statuses of a server that is too busy: a second retry, after a longer pause, often succeeds."""
MAX_RETRIES = 2


class ModelError(Exception):
    """A model call that failed.

    `message` is one sentence for the user and `detail` a fact of ours that the user may read, too. `provider_words`
    are what the provider said, redacted by `error_mapping`: for logs and for operators, never for users.
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
    """Return whether the provider did not work on the request."""
    return error.status is not None or error.category not in FALLEN_SILENT


def retry_pause(error: ModelError, earlier: Sequence[ModelError] = ()) -> float | None:
    """Return the seconds to wait before the next attempt; None where another one would not help.

    `earlier` are the errors after which the call was repeated. A call is made three times at most, and repeated for
    each category once; an overloaded server may use all three. Each pause is twice as long as the one before; a
    provider that asks for a longer one than MAX_PAUSE_S is not asked again.
    """
    if error.category not in RETRYABLE or len(earlier) >= MAX_RETRIES:
        return None
    if error.status not in OVERLOADED and error.category in {before.category for before in earlier}:
        return None
    pause_s = FIRST_PAUSE_S * 2 ** len(earlier) if error.retry_after_s is None else error.retry_after_s
    return pause_s if pause_s <= MAX_PAUSE_S else None
