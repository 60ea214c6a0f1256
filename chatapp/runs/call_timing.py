"""Measures the model calls of one run, for its trace and for the cost of unfinished calls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from prometheus_client import Histogram

from agents.chat_models.usage import count_request
from agents.loop.react import CallSent
from agents.types import Purpose, TokenUsage
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.providers.usage import CallTimes, CallUsage, priced_call
from memory.tokens import estimate_text

first_token_seconds = Histogram(
    "palimpsest_first_token_seconds",
    "From a call of a model for an answer to the first it says.",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160),
)


class CallClock:
    """Times one model call after another. `request_tokens` is the estimated size of the current request, `request_n`
    its number in the run, `shown_before` the length of the answer before it. All clocks of a run share `numbers`."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self.request_tokens = 0
        self.request_n = 0
        self.shown_before = 0
        self._numbers = numbers
        self._started_at: datetime | None = None
        self._begun = 0.0
        self._first_token: float | None = None

    def begin(self, request_tokens: int, shown_before: int) -> None:
        self.request_tokens, self.shown_before = request_tokens, shown_before
        self.request_n = next(self._numbers)
        self._started_at, self._begun, self._first_token = clock.now(), time.monotonic(), None

    def note_token(self) -> None:
        if self._first_token is None:
            self._first_token = time.monotonic()
            first_token_seconds.observe(self._first_token - self._begun)

    def read(self) -> CallTimes | None:
        """Return the times of the call that has just ended; None if none was sent."""
        if self._started_at is None:
            return None
        first_token_ms = (
            None if self._first_token is None else round((self._first_token - self._begun) * 1000)
        )
        return CallTimes(
            started_at=self._started_at,
            first_token_ms=first_token_ms,
            duration_ms=round((time.monotonic() - self._begun) * 1000),
            request_n=self.request_n,
        )


class OpenCall:
    """A model call in progress. `numbers` as in `CallClock`."""

    def __init__(self, sent: CallSent, numbers: Iterator[int]) -> None:
        self.clock = CallClock(numbers)
        # Its text is not part of the answer, so nothing was shown before.
        self.clock.begin(count_request(sent.sent.request), 0)
        self.written: list[str] = []
        self._sent = sent

    def note(self, text: str) -> None:
        self.clock.note_token()
        self.written.append(text)

    def estimate(self, config: ModelConfig, purpose: Purpose) -> CallUsage:
        """Return the estimated usage of a call that ended early, for which the provider reported none."""
        asked = self._sent.context.inputs.calibration.apply(self.clock.request_tokens)
        usage = TokenUsage(asked, estimate_text("".join(self.written)), exact=False)
        return replace(priced_call(config, usage, purpose), times=self.clock.read())
