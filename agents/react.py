"""The loop of an answer: ask the model, pass on what it says, and try once more where that may help.

Says nothing twice: once text was passed on, an error is the run's error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from agents.context import AssembledContext
from agents.errors import ModelError
from agents.types import (
    ChatModel,
    Finished,
    FinishReason,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)

LONGEST_PAUSE_S = 10.0
FIRST_PAUSE_S = 1.0
PASSING = frozenset({"connection", "server", "rate_limit", "timeout"})
"""Errors that a second attempt may not meet again."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Notice:
    """The loop does something the user did not ask for; `text` says what, in one sentence."""

    kind: Literal["retrying", "shrunk"]
    text: str


@dataclass(frozen=True, slots=True)
class CallFinished:
    """One model call is over; `context` is what it was given."""

    usage: TokenUsage
    reason: FinishReason
    context: AssembledContext


AgentStep = TextDelta | ReasoningDelta | Notice | CallFinished


async def run_react(
    model: ChatModel, context: AssembledContext, *, sleep: Sleep = asyncio.sleep
) -> AsyncIterator[AgentStep]:
    """The steps of one answer, ended by a `CallFinished`. Raises ModelError."""
    attempts = _Attempts(context)
    while True:
        said_something = False
        try:
            async for item in model.stream(attempts.context.request):
                match item:
                    case TextDelta() | ReasoningDelta():
                        said_something = True
                        yield item
                    case Finished():
                        yield CallFinished(item.usage, item.reason, attempts.context)
                    case ToolCallDelta():
                        raise ModelError(
                            "bad_response",
                            "The model asked for a tool, but none was offered to it. Please try again.",
                        )
            return
        except ModelError as error:
            notice = None if said_something else attempts.after(error)
            if notice is None:
                raise
            yield notice
            await sleep(attempts.pause_s)


class _Attempts:
    """What to try after an error: the same again once, or less and less context."""

    def __init__(self, context: AssembledContext) -> None:
        self.context = context
        self.pause_s = 0.0
        self._was_repeated = False

    def after(self, error: ModelError) -> Notice | None:
        """None when nothing is left to try."""
        if error.category == "overflow":
            return self._shrink(error)
        if error.category in PASSING and not self._was_repeated:
            return self._repeat(error)
        return None

    def _shrink(self, error: ModelError) -> Notice | None:
        smaller = self.context.shrunk(error.window_tokens)
        if smaller is None:
            return None
        self.context, self.pause_s = smaller, 0.0
        return Notice("shrunk", "The model found the conversation too long; trying again with less of it.")

    def _repeat(self, error: ModelError) -> Notice | None:
        pause_s = FIRST_PAUSE_S if error.retry_after_s is None else error.retry_after_s
        if pause_s > LONGEST_PAUSE_S:
            return None
        self._was_repeated, self.pause_s = True, pause_s
        return Notice("retrying", f"{error.message} Trying once more.")
