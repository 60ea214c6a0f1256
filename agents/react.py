"""The loop of an answer: ask the model, pass on what it says, and try once more where that may help.

Says nothing twice: once text was passed on, an error is the run's error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

from agents.context import AssembledContext
from agents.error_mapping import describe_error
from agents.errors import ModelError
from agents.retrying import retry_pause
from agents.types import (
    ChatModel,
    Finished,
    FinishReason,
    ModelRequest,
    ReasoningDelta,
    RequestSent,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from agents.usage import count_tools
from memory.guard import ContextGuard, Fits

UNASKED_TOOL = "The model asked for a tool, but none was offered to it; your message is stored. Press Retry."
NO_ROOM_TO_ANSWER = (
    "The model used up its output limit before it wrote anything; your message is stored. Ask for something shorter, "
    "or choose another model."
)
FULL_WINDOW = 0.97

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Notice:
    """The loop does something the user did not ask for; `text` says what, in one sentence. `window_tokens` is the
    window a provider named when it refused."""

    kind: Literal["retrying", "shrunk"]
    text: str
    window_tokens: int | None = None


SHORTENED = Notice(
    "shrunk", "The context was larger than the model's budget; it was shortened before the call."
)


@dataclass(frozen=True, slots=True)
class CallFinished:
    """One model call is over; `context` is what it was given."""

    usage: TokenUsage
    reason: FinishReason
    context: AssembledContext


@dataclass(frozen=True, slots=True)
class CallSent:
    """A model call leaves; `context` is what it was made of."""

    sent: RequestSent
    context: AssembledContext


AgentStep = CallSent | TextDelta | ReasoningDelta | Notice | CallFinished


async def run_react(
    model: ChatModel, context: AssembledContext, *, sleep: Sleep = asyncio.sleep
) -> AsyncGenerator[AgentStep, None]:
    """The steps of one answer, ended by a `CallFinished`. Raises ModelError.

    A call that used tokens and gave nothing to show has its own `CallFinished` before the error or the next attempt.
    """
    attempts = _Attempts(context)
    while True:
        said_something = False
        request, shortened = guard_request(attempts.context)
        if shortened is not None:
            yield shortened
        try:
            async with aclosing(model.stream(request)) as items:
                async for item in items:
                    match item:
                        case RequestSent():
                            yield CallSent(item, attempts.context)
                        case TextDelta() | ReasoningDelta():
                            said_something = True
                            yield item
                        case Finished():
                            yield CallFinished(item.usage, item.reason, attempts.context)
                            if not said_something:
                                _check_silence(item, attempts.context)
                        case ToolCallDelta():
                            raise ModelError("bad_response", UNASKED_TOOL)
            return
        except ModelError as error:
            notice = None if said_something else attempts.after(error)
            if notice is None:
                raise
            yield notice
            await sleep(attempts.pause_s)


def guard_request(context: AssembledContext) -> tuple[ModelRequest, Notice | None]:
    """The last look before a call: what does not fit is shortened here, without asking anybody, and told.

    Raises memory.errors.ContextError where nothing would help.
    """
    inputs = context.inputs
    guard = ContextGuard(inputs.policy, inputs.budget, inputs.calibration, count_tools(inputs.tools))
    request = context.request
    checked = guard.check(request.messages)
    if isinstance(checked, Fits):
        return replace(request, messages=checked.messages), SHORTENED if checked.was_truncated else None
    shortened = guard.fall_back(checked, "no summary is waited for in the middle of an answer")
    return replace(request, messages=shortened.messages), SHORTENED


def _check_silence(finished: Finished, context: AssembledContext) -> None:
    """Raises where a model that said nothing says by its last word why."""
    if finished.reason == "content_filter":
        raise describe_error("content_filter")
    if finished.reason != "length":
        return
    # Some servers fill their window with as much of the prompt as fits and have no room left to answer.
    window = context.inputs.budget.context_size
    if finished.usage.exact and finished.usage.input_tokens >= window * FULL_WINDOW:
        raise describe_error("overflow", "The prompt filled the whole window.")
    raise ModelError("bad_response", NO_ROOM_TO_ANSWER)


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
        pause_s = None if self._was_repeated else retry_pause(error)
        return None if pause_s is None else self._repeat(error, pause_s)

    def _shrink(self, error: ModelError) -> Notice | None:
        smaller = self.context.shrunk(error.window_tokens)
        if smaller is None:
            return None
        self.context, self.pause_s = smaller, 0.0
        text = "The model found the conversation too long; trying again with less of it."
        return Notice("shrunk", text, error.window_tokens)

    def _repeat(self, error: ModelError, pause_s: float) -> Notice:
        self._was_repeated, self.pause_s = True, pause_s
        return Notice("retrying", f"{error.message} Trying once more.")
