"""Run the loop of an answer: call the model, pass on its output and run the tools it calls, until it has answered.

Once text of a call was passed on, the call is not retried: its error becomes the run's error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal

from agents.background.calls import Sleep
from agents.background.summarise import Summariser, SummaryResult
from agents.chat_models.error_mapping import describe_error
from agents.errors import ModelError, retry_pause
from agents.loop.request import LoopRequest
from agents.loop.tool_calls import CallChecker, CallCollector, CycleWatch, call_key, calling_message
from agents.loop.tool_running import run_calls
from agents.ports import CallResult, ToolUse
from agents.prompts import FINAL_ANSWER_PROMPT, REPEATING_PROMPT
from agents.requests.context import AssembledContext
from agents.text import storable_text
from agents.types import (
    LIMIT_REASONS,
    UNFINISHED_REASONS,
    ChatModel,
    Finished,
    FinishReason,
    ReasoningDelta,
    RequestSent,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    ToolsPrompted,
)
from memory.tokens import estimate_parts, text_message
from memory.types import Message, Part

UNASKED_TOOL = "The model asked for a tool, but none was offered to it; your message is stored. Press Retry."
NO_FINAL_ANSWER = "The model went on calling tools instead of answering; your message is stored. Press Retry."
NO_ROOM_TO_ANSWER = (
    "The model used up its output limit before it wrote anything; your message is stored. Ask for something shorter, "
    "or choose another model."
)
FULL_WINDOW = 0.97
LONG_CHARS = 10_000
"""Validating longer arguments against their schema could block the event loop for too long."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the loop does on its own; `text` is one sentence for the user.

    `window_tokens` is the window that a provider named when it refused the request.
    """

    kind: Literal["retrying", "shrunk", "summarised", "repeating", "max_steps", "prompted_tools"]
    text: str
    window_tokens: int | None = None


SHORTENED = Notice(
    "shrunk", "The context was larger than the model's budget; it was shortened before the call."
)
SUMMARISED = Notice(
    "summarised",
    "The context was larger than the model's budget; what was oldest in it was summarised before the call.",
)
REPEATING = Notice("repeating", "The model repeated the same tool call; it answers with what it has.")
OUT_OF_STEPS = Notice("max_steps", "The limit of tool steps was reached; the model answers with what it has.")


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A model call has ended; `context` is what its request was built from.

    If it `has_tool_calls`, the loop goes on.
    """

    usage: TokenUsage
    reason: FinishReason
    context: AssembledContext
    has_tool_calls: bool = False


@dataclass(frozen=True, slots=True)
class CallSent:
    """A model call was sent; `context` is what its request was built from."""

    sent: RequestSent
    context: AssembledContext


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A tool call has ended and its result is recorded."""

    result: CallResult


AgentStep = CallSent | TextDelta | ReasoningDelta | Notice | CallFinished | ToolFinished


def run_react(
    model: ChatModel,
    context: AssembledContext,
    *,
    tool_use: ToolUse | None = None,
    summariser: Summariser | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AsyncGenerator[AgentStep, None]:
    """Yield the steps of one answer, ended by the last call's `CallFinished`. Raise ModelError or ContextError.

    The model is offered the tools of the context's inputs, which `tool_use` must contain. A call that used tokens but
    showed nothing gets its own `CallFinished` before the error or the next attempt. `summariser` is called if the
    policy waits for summaries and the request exceeds its budget.
    """
    return _Loop(model, context, tool_use, summariser, sleep).run()


@dataclass(slots=True)
class _Reply:
    """What one model call returned."""

    text: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: CallCollector = field(default_factory=CallCollector)
    has_shown: bool = False
    is_unfinished: bool = False
    """Its tool calls are incomplete and are not run."""
    is_cut: bool = False
    """Its last tool call may be incomplete."""


class _Loop:
    def __init__(
        self,
        model: ChatModel,
        context: AssembledContext,
        tool_use: ToolUse | None,
        summariser: Summariser | None,
        sleep: Sleep,
    ) -> None:
        self.model = model
        self.request = LoopRequest.begin(context)
        self.use = tool_use
        self.summariser = summariser
        self.sleep = sleep
        self.cycles = CycleWatch()
        self.step = 0
        self.may_call = bool(tool_use and tool_use.tools)
        self._notices: list[Notice] = []

    async def run(self) -> AsyncGenerator[AgentStep, None]:
        while True:
            self.step += 1
            # Take messages before each call, so that the model sees those sent meanwhile.
            if self.use is not None and self.use.inbox is not None:
                self.request = self.request.add(*await self.use.inbox.take())
            for notice in self._notices:
                yield notice
            self._notices = []
            reply = _Reply()
            async with aclosing(self._ask(reply)) as steps:
                async for step in steps:
                    yield step
            if not reply.calls.calls or not self.may_call or reply.is_unfinished:
                return
            async with aclosing(self._run_tools(reply)) as steps:
                async for step in steps:
                    yield step

    # --- calling the model

    async def _ask(self, reply: _Reply) -> AsyncGenerator[AgentStep, None]:
        """Yield the steps of one model call and its retries."""
        repeated: list[ModelError] = []
        while True:
            if (shortened := await self._fit()) is not None:
                yield shortened
            try:
                async with aclosing(self._stream(reply)) as steps:
                    async for step in steps:
                        yield step
                return
            except ModelError as error:
                if reply.has_shown:
                    raise
                notice, pause_s = self._plan_retry(error, repeated)
                if notice is None:
                    raise
                # A retry with a smaller request does not count as a repetition.
                if notice.kind == "retrying":
                    repeated.append(error)
                yield notice
                await self.sleep(pause_s)
                # Fragments of the failed call must not be joined with those of the next one.
                reply.calls = CallCollector()

    async def _fit(self) -> Notice | None:
        """Make the request fit. Return a notice for the user if something was removed from it."""
        store = self.use.store if self.use else None
        fitting = await self.request.fit(store, self.summariser)
        self.request = fitting.mark_reported()
        if not fitting.was_shortened:
            return None
        if fitting.summary is None:
            return SHORTENED
        if fitting.summary.fallback_reason is not None:
            self.summariser = None  # do not use a failed summariser again in this answer
        return _describe_summary(fitting.summary)

    async def _stream(self, reply: _Reply) -> AsyncGenerator[AgentStep, None]:
        request = self.request.request(with_tools=self.may_call or self.use is None)
        async with aclosing(self.model.stream(request)) as items:
            async for item in items:
                match item:
                    case RequestSent():
                        yield CallSent(item, self.request.context)
                    case ToolsPrompted():
                        yield Notice("prompted_tools", item.text)
                    case TextDelta():
                        # Blank text alone is not an answer.
                        reply.has_shown |= bool(item.text.strip())
                        reply.text.append(item.text)
                        yield item
                    case ReasoningDelta():
                        reply.has_shown = True
                        if item.must_be_returned:
                            reply.thought.append(item.text)
                        yield item
                    case ToolCallDelta():
                        if self.use is None or not self.use.tools:
                            raise ModelError("bad_response", UNASKED_TOOL)
                        reply.calls.add(item)
                    case Finished():
                        reply.is_unfinished = item.reason in UNFINISHED_REASONS
                        reply.is_cut = item.reason in LIMIT_REASONS
                        calls_tools = self.may_call and bool(reply.calls.calls) and not reply.is_unfinished
                        context = self.request.context
                        # Yield this before the check below raises, so that the usage is counted.
                        yield CallFinished(item.usage, item.reason, context, calls_tools)
                        if not reply.has_shown and not calls_tools:
                            self._check_empty(item, reply)

    def _check_empty(self, finished: Finished, reply: _Reply) -> None:
        """Raise ModelError if the finish reason explains why the model wrote nothing."""
        if finished.reason == "bound":
            raise describe_error("bound")
        if reply.calls.calls:
            raise ModelError("bad_response", NO_FINAL_ANSWER)
        if finished.reason == "content_filter":
            raise describe_error("content_filter")
        if finished.reason != "length":
            return
        # Some servers fill their window with as much of the prompt as fits, and then have no room left to answer.
        window = self.request.context.inputs.budget.context_size
        if finished.usage.exact and finished.usage.input_tokens >= window * FULL_WINDOW:
            raise describe_error("overflow", detail="The prompt filled the whole window.")
        raise ModelError("bad_response", NO_ROOM_TO_ANSWER)

    def _plan_retry(self, error: ModelError, repeated: list[ModelError]) -> tuple[Notice | None, float]:
        """Return (notice, pause in s) of the next attempt, with the same or a smaller request. No notice: no retry."""
        if error.category == "overflow":
            smaller = self.request.shrunk(error.window_tokens)
            if smaller is None:
                return None, 0.0
            self.request = smaller.mark_reported()
            text = "The model found the conversation too long; trying again with less of it."
            return Notice("shrunk", text, error.window_tokens), 0.0
        pause_s = retry_pause(error, repeated)
        if pause_s is None:
            return None, 0.0
        what = error.message.partition(";")[0].rstrip(".")  # the rest advises users to retry themselves
        return Notice("retrying", f"{what}; trying once more."), pause_s

    # --- running tools

    async def _run_tools(self, reply: _Reply) -> AsyncGenerator[AgentStep, None]:
        assert self.use is not None
        checker, asked = CallChecker(self.use.tools), reply.calls.calls
        if sum(len(arguments) for _, arguments in asked) > LONG_CHARS:
            prepared = await asyncio.to_thread(checker.prepare, asked, self.step, is_cut=reply.is_cut)
        else:
            prepared = checker.prepare(asked, self.step, is_cut=reply.is_cut)
        calls = [one.call for one in prepared]
        text, thought = storable_text("".join(reply.text)), storable_text("".join(reply.thought))
        asking = calling_message(text, calls, thought)
        # Record the calls before they run, so that after a crash it is known which had begun.
        await self.use.records.record_calls(calls)
        found: dict[str, CallResult] = {}
        limit = self.request.result_limit(len(calls))
        async with aclosing(run_calls(prepared, self.use, limit)) as results:
            async for result in results:
                found[result.call.call_id] = result
                yield ToolFinished(result)
        # Calls end in any order, but the conversation has their results in the order of the calls.
        results_in_order = [found[call.call_id] for call in calls]
        self._remember_unknown(results_in_order)
        messages = [_result_message(result) for result in results_in_order]
        self.request = self.request.add_step([asking, *messages])
        self._limit_calls(results_in_order)

    def _remember_unknown(self, results: list[CallResult]) -> None:
        """Remember calls that may have happened and cannot be repeated, so that none runs again in this answer."""
        assert self.use is not None
        unknown = {
            call_key(result.call.name, result.call.arguments): None
            for result in results
            if result.state == "interrupted" and not result.call.is_idempotent
        }
        if unknown:
            self.use = replace(self.use, earlier={**self.use.earlier, **unknown})

    def _limit_calls(self, results: list[CallResult]) -> None:
        """Warn the model of a cycle. Offer no more tools if the cycle goes on, or after the last step."""
        verdict = self.cycles.check(results)
        if verdict == "warn":
            self.request = self.request.add(_note(REPEATING_PROMPT))
        max_steps = self.request.context.inputs.policy.max_steps
        if verdict == "end" or self.step >= max_steps:
            self.may_call = False
            self.request = self.request.add(_note(FINAL_ANSWER_PROMPT))
            self._notices.append(REPEATING if verdict == "end" else OUT_OF_STEPS)


def _result_message(result: CallResult) -> Message:
    parts: tuple[Part, ...] = (result.part, *result.images)
    return Message(role="tool", parts=parts, tokens=estimate_parts(parts))


def _describe_summary(summary: SummaryResult) -> Notice:
    if summary.fallback_reason is None:
        return SUMMARISED
    return Notice("summarised", f"{SHORTENED.text} No model's summary: {summary.fallback_reason}.")


def _note(text: str) -> Message:
    """Return a note to the model as a user message: not every chat template accepts a late system message."""
    return text_message("user", text, kind="injected")
