"""Hold the request of a loop as calls, results and messages sent during the run are added, and make it fit.

Results of earlier steps are shortened first; then the guard replaces the oldest messages by a summary or an extract.
The question is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.background.summarise import Summariser, SummaryResult
from agents.loop.tool_running import keep_text
from agents.ports import ResultStore
from agents.requests.context import EMERGENCY_CHARS, AssembledContext, tool_notes
from agents.tools.offloaded import LIST_REFERENCE
from agents.tools.protocol import ResultLimit
from agents.tools.tool_results import READING_TOOLS, excerpt_alone
from agents.types import ModelRequest
from memory.errors import ContextError
from memory.summaries.reminder import ACHIEVED_LINES, build_reminder, list_achieved, read_achieved
from memory.tokens import total_tokens, with_parts
from memory.truncate import body_tokens, cut_message, cut_middle, find_question, is_fixed
from memory.types import Message, ToolResultPart
from memory.window.cut import measure_room
from memory.window.guard import ContextGuard, Fits, NeedsCompaction

SHRUNK_CHARS = 600
"""Characters kept of a result of an earlier step once the request is full: enough to identify it."""
ROOM_SHARE = 0.7
"""Results are shortened to this share of the room: some more calls fit, and the cached prefix stays the same."""
RESULTS_SHARE = 2
"""The results of one step together take at most half of the body."""
LEAST_RESULT_TOKENS = 200
NOTE_CHARS = 800
"""Room for the note after an excerpt that says how to read on."""
DONE_LINES = ACHIEVED_LINES // 2
"""The reminder's lines for finished turns; the others name stored results."""
STORED = "its result is stored as"


@dataclass(frozen=True, slots=True)
class LoopRequest:
    """A whole request. `messages` from `newest` on came with the last step; the guard has checked the first `passed`.

    `was_shortened`: something was removed that the user does not know of yet; `summary` is what replaces it, if a
    summariser was used.
    """

    context: AssembledContext
    messages: tuple[Message, ...]
    newest: int
    passed: int = 0
    was_shortened: bool = False
    summary: SummaryResult | None = None

    @classmethod
    def begin(cls, context: AssembledContext) -> LoopRequest:
        """Return the first request of a loop."""
        messages = context.request.messages
        return cls(context, messages, len(messages))

    @property
    def tokens(self) -> int:
        """Return the size of the request in tokens, calibrated to the model's own counts."""
        counted = total_tokens(self.messages) + self.context.view.tools_tokens
        return self.context.inputs.calibration.apply(counted)

    def request(self, *, with_tools: bool) -> ModelRequest:
        inputs = self.context.inputs
        return ModelRequest(
            messages=self.messages,
            max_output_tokens=inputs.budget.output_for(self.tokens),
            tools=inputs.tools if with_tools else (),
            temperature=inputs.temperature,
        )

    def mark_reported(self) -> LoopRequest:
        """Return the request after the user was told what was removed from it."""
        return replace(self, was_shortened=False, summary=None)

    def add_step(self, messages: Sequence[Message]) -> LoopRequest:
        """Return the request with the calls and results of another step."""
        return replace(self, messages=(*self.messages, *messages), newest=len(self.messages))

    def add(self, *messages: Message) -> LoopRequest:
        """Return the request with notes, or messages of the user, added after the last step."""
        return replace(self, messages=(*self.messages, *messages))

    def result_limit(self, count: int) -> ResultLimit:
        """Return the limit for each of `count` results of one step."""
        policy, budget = self.context.inputs.policy, self.context.inputs.budget
        share = self._body_room() // RESULTS_SHARE // max(1, count)
        tokens = max(LEAST_RESULT_TOKENS, min(policy.result_limit(budget), share))
        return ResultLimit(
            tokens, max(policy.message_char_limit // 2, policy.message_char_limit - NOTE_CHARS)
        )

    async def fit(self, store: ResultStore | None, summariser: Summariser | None = None) -> LoopRequest:
        """Return the request within its budget. Without a summariser, an extract replaces the removed messages.

        Raise memory.errors.ContextError if even that is too large.
        """
        fitting = self
        if body_tokens(self.messages) > self._body_room():
            fitting = await self._shrink_results(store)
        if summariser is None or not self.context.inputs.policy.summarises_steps:
            return fitting._guarded()
        return await fitting._summarised(summariser)

    def shrunk(self, window_tokens: int | None) -> LoopRequest | None:
        """Return a smaller request after an overflow: first half of it, then summary and question alone, then None."""
        context = self.context.shrunk(window_tokens, self.tokens)
        if context is None:
            return None
        messages = context.request.messages
        asked = find_question(self.messages)
        steps = () if context.shrinks > 1 or asked is None else self.messages[asked + 1 :]
        capped = tuple(cut_message(message, EMERGENCY_CHARS, cut_middle) for message in steps)
        try:
            return LoopRequest(context, (*messages, *capped), len(messages))._guarded()
        except ContextError:
            return replace(self, context=context).shrunk(window_tokens)

    def _body_room(self) -> int:
        inputs = self.context.inputs
        system = sum(message.tokens for message in self.messages if is_fixed(message))
        system_tokens = system + self.context.view.tools_tokens
        return measure_room(
            inputs.policy, inputs.budget, inputs.calibration, system_tokens=system_tokens
        ).body

    @property
    def _guard(self) -> ContextGuard:
        inputs, tools_tokens = self.context.inputs, self.context.view.tools_tokens
        return ContextGuard(inputs.policy, inputs.budget, inputs.calibration, tools_tokens)

    def _guarded(self) -> LoopRequest:
        checked = self._guard.check(self.messages, self.passed)
        if isinstance(checked, Fits):
            return self._fitting(checked)
        shortened = self._guard.fall_back(checked, self._reminder(checked))
        return self._replaced(shortened, was_shortened=True)

    async def _summarised(self, summariser: Summariser) -> LoopRequest:
        checked = self._guard.check(self.messages, self.passed)
        if isinstance(checked, Fits):
            return self._fitting(checked)
        summary = await summariser.summarise(
            checked.to_summarise, previous=checked.previous, policy=checked.policy, hint="react_iteration"
        )
        is_extract = summary.fallback_reason is not None
        shortened = self._guard.place(checked, summary.text, self._reminder(checked), is_extract=is_extract)
        return replace(self._replaced(shortened, was_shortened=True), summary=summary)

    def _fitting(self, checked: Fits) -> LoopRequest:
        fitting = self._replaced(checked.messages, self.was_shortened or checked.was_truncated)
        return replace(fitting, passed=0 if checked.was_truncated else len(checked.messages))

    def _reminder(self, need: NeedsCompaction) -> Message | None:
        tools = tool_notes(self.context.inputs.tools)
        before = [message for message in need.messages if message.kind == "reminder"]
        done = [line for message in before for line in read_achieved(message) if STORED not in line]
        done = [*done, *list_achieved(need.to_summarise)][-DONE_LINES:]
        return build_reminder(tools, [*done, *_list_stored(need.to_summarise, ACHIEVED_LINES - len(done))])

    def _replaced(self, messages: tuple[Message, ...], was_shortened: bool) -> LoopRequest:
        # Count from the end: the last step stays there, whatever was removed before it.
        kept = len(self.messages) - self.newest
        newest = max(0, len(messages) - kept)
        return replace(self, messages=messages, newest=newest, passed=0, was_shortened=was_shortened)

    async def _shrink_results(self, store: ResultStore | None) -> LoopRequest:
        """Return the request with results shortened, oldest first, until it fits with some room to spare."""
        goal = int(self._body_room() * ROOM_SHARE)
        messages = list(self.messages)
        used = body_tokens(messages)
        # Keep the last step whole: no model has read it yet.
        for at in range(self.newest):
            if used <= goal:
                break
            if not messages[at].pinned:
                shorter = await _shrink(messages[at], store)
                used -= messages[at].tokens - shorter.tokens
                messages[at] = shorter
        return replace(self, messages=tuple(messages), passed=0)


async def _shrink(message: Message, store: ResultStore | None) -> Message:
    """Return the message with its calls and results shortened. They are stored in full as messages of the
    conversation."""
    if message.tool_calls:
        calls = [
            cut_message(with_parts(message, (call,)), SHRUNK_CHARS).parts[0] for call in message.tool_calls
        ]
        said = [part for part in message.parts if part not in message.tool_calls]
        return with_parts(message, (*said, *calls))
    if message.role != "tool":
        return message
    parts = [
        await _shrink_part(part, store) if isinstance(part, ToolResultPart) else part
        for part in message.parts
    ]
    return with_parts(message, tuple(parts))


async def _shrink_part(part: ToolResultPart, store: ResultStore | None) -> ToolResultPart:
    if len(part.text) <= 2 * SHRUNK_CHARS:
        return part
    reference = part.offload_ref
    # What a reading tool returned is stored already.
    is_copy = part.name.startswith(READING_TOOLS)
    if reference is None and not is_copy:
        reference = await keep_text(part, store)
    if reference:
        place = f"The whole result is stored as {reference}."
    else:
        place = "The same call reads it again." if is_copy else "The rest is gone; call again if need be."
    shown = excerpt_alone(part.text) if part.offload_ref else part.text
    text = f"{cut_middle(shown, SHRUNK_CHARS)}\n[Shortened to make room. {place}]"
    return replace(part, text=text, offload_ref=reference)


def _list_stored(messages: Sequence[Message], most: int) -> list[str]:
    """Return at most `most` lines about stored results: the newest with their references, and how to list the
    others."""
    results = [result for message in messages for result in message.tool_results if result.offload_ref]
    lines = [f"{result.name}: {STORED} {result.offload_ref}" for result in results]
    if len(lines) <= most:
        return lines
    newest = lines[len(lines) - most + 1 :]
    more = len(lines) - len(newest)
    return [f"{more} earlier results are stored, too: reference {LIST_REFERENCE!r} lists them all.", *newest]
