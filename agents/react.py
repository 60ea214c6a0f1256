"""The loop of an answer: ask the model, pass on what it says, run the tools it asks for, until it has answered.

Says nothing twice: once text of a call was passed on, an error of this call is the run's error.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Literal

from agents.context import AssembledContext
from agents.error_mapping import describe_error
from agents.errors import ModelError, retry_pause
from agents.loop_request import LoopRequest
from agents.ports import CallResult, EarlierCall, RequestedCall, ToolUse
from agents.prompts import FINAL_ANSWER_PROMPT, REPEATING_PROMPT
from agents.summarise import Summariser, SummaryResult
from agents.text import storable_text
from agents.tool_calls import CallCollector, CallDesk, CycleWatch, call_key, calling_message
from agents.tool_running import run_calls
from agents.types import (
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

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Notice:
    """The loop does something the user did not ask for; `text` says what, in one sentence. `window_tokens` is the
    window a provider named when it refused."""

    kind: Literal["retrying", "shrunk", "summarised", "repeating", "max_steps", "prompted_tools"]
    text: str
    window_tokens: int | None = None


SHORTENED = Notice(
    "shrunk", "The context was larger than the model's budget; it was shortened before the call."
)
SUMMARISED = (
    "The context was larger than the model's budget; what was oldest in it was summarised before the call."
)
REPEATING = Notice("repeating", "The model repeated the same tool call; it answers with what it has.")
OUT_OF_STEPS = Notice("max_steps", "The limit of tool steps was reached; the model answers with what it has.")


@dataclass(frozen=True, slots=True)
class CallFinished:
    """One model call is over; `context` is what it was made from, `step` its number in the loop, from 1.
    `has_tool_calls`: the loop goes on."""

    usage: TokenUsage
    reason: FinishReason
    context: AssembledContext
    step: int = 1
    has_tool_calls: bool = False


@dataclass(frozen=True, slots=True)
class CallSent:
    """A model call leaves; `context` is what it was made from."""

    sent: RequestSent
    context: AssembledContext
    step: int = 1


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """Recorded already; where it needs the user's approval, it waits for that."""

    call: RequestedCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    result: CallResult


@dataclass(frozen=True, slots=True)
class MessagesSeen:
    """What the user sent meanwhile is part of the next request."""

    messages: tuple[Message, ...]


AgentStep = (
    CallSent | TextDelta | ReasoningDelta | Notice | CallFinished | ToolStarted | ToolFinished | MessagesSeen
)


async def run_react(
    model: ChatModel,
    context: AssembledContext,
    *,
    tool_use: ToolUse | None = None,
    summariser: Summariser | None = None,
    sleep: Sleep = asyncio.sleep,
) -> AsyncGenerator[AgentStep, None]:
    """The steps of one answer; the last call's `CallFinished` is its end. Raises ModelError, ContextError.

    The model is offered the tools of the context's inputs, and `tool_use` has to hold them. A call that used tokens
    and gave nothing to show has its own `CallFinished` before the error or the next attempt. `summariser` is asked
    where the policy waits for summaries and the request outgrows its budget.
    """
    loop = _Loop(model, context, tool_use, summariser, sleep)
    async with aclosing(loop.run()) as steps:
        async for step in steps:
            yield step


@dataclass(slots=True)
class _Said:
    """What one model call said."""

    text: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: CallCollector = field(default_factory=CallCollector)
    has_shown: bool = False
    is_over_bound: bool = False
    """Its stream was closed for its length: what it began to call is not run."""


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
        self.desk = CallDesk(tool_use.tools) if tool_use else None
        self.cycles = CycleWatch()
        self.step = 0
        self.may_call = bool(tool_use and tool_use.tools)
        self._notices: list[Notice] = []

    async def run(self) -> AsyncGenerator[AgentStep, None]:
        while True:
            self.step += 1
            if (seen := await self._take_messages()) is not None:
                yield seen
            for notice in self._notices:
                yield notice
            self._notices = []
            said = _Said()
            async with aclosing(self._ask(said)) as steps:
                async for step in steps:
                    yield step
            if not said.calls.calls or not self.may_call or said.is_over_bound:
                return
            async with aclosing(self._run_tools(said)) as steps:
                async for step in steps:
                    yield step

    async def _take_messages(self) -> MessagesSeen | None:
        if self.use is None or self.use.inbox is None:
            return None
        messages = tuple(await self.use.inbox.take())
        if not messages:
            return None
        self.request = self.request.add(*messages)
        return MessagesSeen(messages)

    # --- asking --------------------------------------------------------------------------------------

    async def _ask(self, said: _Said) -> AsyncGenerator[AgentStep, None]:
        """One model call, with its second attempts."""
        retries = 0
        while True:
            if (shortened := await self._fit()) is not None:
                yield shortened
            try:
                async with aclosing(self._stream(said)) as steps:
                    async for step in steps:
                        yield step
                return
            except ModelError as error:
                if said.has_shown:
                    raise
                notice, pause_s = self._after(error, retries)
                if notice is None:
                    raise
                retries += notice.kind == "retrying"
                yield notice
                await self.sleep(pause_s)
                said.calls = CallCollector()

    async def _fit(self) -> Notice | None:
        """What to tell of what left the request."""
        store = self.use.store if self.use else None
        fitting = await self.request.fit(store, self.summariser)
        self.request = fitting.told()
        if not fitting.was_shortened:
            return None
        if fitting.summary is None:
            return SHORTENED
        if fitting.summary.fallback_reason is not None:
            self.summariser = None  # it is not asked again in this answer
        return _tell_summary(fitting.summary)

    async def _stream(self, said: _Said) -> AsyncGenerator[AgentStep, None]:
        request = self.request.request(with_tools=self.may_call or self.use is None)
        async with aclosing(self.model.stream(request)) as items:
            async for item in items:
                match item:
                    case RequestSent():
                        yield CallSent(item, self.request.context, self.step)
                    case ToolsPrompted():
                        yield Notice("prompted_tools", item.text)
                    case TextDelta():
                        said.has_shown = True
                        said.text.append(item.text)
                        yield item
                    case ReasoningDelta():
                        said.has_shown = True
                        if item.is_wanted_back:
                            said.thought.append(item.text)
                        yield item
                    case ToolCallDelta():
                        if self.use is None or not self.use.tools:
                            raise ModelError("bad_response", UNASKED_TOOL)
                        said.calls.add(item)
                    case Finished():
                        said.is_over_bound = item.reason == "bound"
                        calls_tools = self.may_call and bool(said.calls.calls) and not said.is_over_bound
                        context = self.request.context
                        yield CallFinished(item.usage, item.reason, context, self.step, calls_tools)
                        if not said.has_shown and not calls_tools:
                            self._check_silence(item, said)

    def _check_silence(self, finished: Finished, said: _Said) -> None:
        """Raises where a model that said nothing says by its last word why."""
        if said.is_over_bound:
            raise describe_error("bound")
        if said.calls.calls:
            raise ModelError("bad_response", NO_FINAL_ANSWER)
        if finished.reason == "content_filter":
            raise describe_error("content_filter")
        if finished.reason != "length":
            return
        # Some servers fill their window with as much of the prompt as fits and have no room left to answer.
        window = self.request.context.inputs.budget.context_size
        if finished.usage.exact and finished.usage.input_tokens >= window * FULL_WINDOW:
            raise describe_error("overflow", detail="The prompt filled the whole window.")
        raise ModelError("bad_response", NO_ROOM_TO_ANSWER)

    def _after(self, error: ModelError, retries: int) -> tuple[Notice | None, float]:
        """What to try after an error, and the pause before: the same again once, or less and less context."""
        if error.category == "overflow":
            smaller = self.request.shrunk(error.window_tokens)
            if smaller is None:
                return None, 0.0
            self.request = smaller.told()
            text = "The model found the conversation too long; trying again with less of it."
            return Notice("shrunk", text, error.window_tokens), 0.0
        pause_s = retry_pause(error, retries)
        if pause_s is None:
            return None, 0.0
        what = error.message.partition(";")[0].rstrip(".")  # without what to do where nobody tries again
        return Notice("retrying", f"{what}; trying once more."), pause_s

    # --- tools ---------------------------------------------------------------------------------------

    async def _run_tools(self, said: _Said) -> AsyncGenerator[AgentStep, None]:
        assert self.use is not None
        assert self.desk is not None
        prepared = self.desk.prepare(said.calls.calls, self.step)
        calls = [one.call for one in prepared]
        text, thought = storable_text("".join(said.text)), storable_text("".join(said.thought))
        asking = calling_message(text, calls, thought)
        await self.use.records.record_calls(calls)
        for call in calls:
            yield ToolStarted(call)
        found: dict[str, CallResult] = {}
        limit = self.request.result_limit(len(calls))
        async with aclosing(run_calls(prepared, self.use, limit)) as results:
            async for result in results:
                found[result.call.call_id] = result
                yield ToolFinished(result)
        results_in_order = [found[call.call_id] for call in calls]
        self._remember_unknown(results_in_order)
        messages = [_result_message(result) for result in results_in_order]
        self.request = self.request.add_step([asking, *messages])
        self._look_for_the_end(results_in_order)

    def _remember_unknown(self, results: list[CallResult]) -> None:
        """A call that cannot be undone and whose end nobody knows is not run again in this answer."""
        assert self.use is not None
        unknown = {
            call_key(result.call.name, result.call.arguments): EarlierCall(None)
            for result in results
            if result.state == "interrupted" and not result.call.is_idempotent
        }
        if unknown:
            self.use = replace(self.use, earlier={**self.use.earlier, **unknown})

    def _look_for_the_end(self, results: list[CallResult]) -> None:
        """Whether the next call is the last one, without tools, and what the model is told of it."""
        verdict = self.cycles.note(results)
        if verdict == "tell":
            self.request = self.request.add(_note(REPEATING_PROMPT))
        max_steps = self.request.context.inputs.policy.max_steps
        if verdict == "end" or self.step >= max_steps:
            self.may_call = False
            self.request = self.request.add(_note(FINAL_ANSWER_PROMPT))
            self._notices.append(REPEATING if verdict == "end" else OUT_OF_STEPS)


def _result_message(result: CallResult) -> Message:
    parts: tuple[Part, ...] = (result.part, *result.images)
    return Message(role="tool", parts=parts, tokens=estimate_parts(parts))


def _tell_summary(summary: SummaryResult) -> Notice:
    if summary.fallback_reason is None:
        return Notice("summarised", SUMMARISED)
    return Notice("summarised", f"{SHORTENED.text} No model's summary: {summary.fallback_reason}.")


def _note(text: str) -> Message:
    """As the user's: not every chat template takes a late system message. It starts no turn."""
    return text_message("user", text, kind="injected")
