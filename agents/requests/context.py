"""Assemble the request of one model call, in an order that providers can cache: system prompt, profile, summary with
its reminder, history, recall, notes of hooks, question.

Until a compaction, each request begins with the bytes of the one before: what a question recalled stays in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from agents.chat_models.usage import count_tools
from agents.types import ModelRequest, ToolSpec
from memory.budget import TokenBudget
from memory.errors import ContextError
from memory.summaries.reminder import ToolNote, build_reminder, list_achieved
from memory.tokens import total_tokens
from memory.types import ImagePart, Message, last_position, with_data_urls
from memory.window.loading import LeftOut
from memory.window.view import NOTHING, Recalled, View, ViewInputs, ViewParts, fit_view

Source = Literal["system", "profile", "summary", "reminder", "history", "recall", "hook", "question"]

OWN_TOOLS = "built-in"
EMERGENCY_TURNS = 5
"""Turns that a request keeps at most after its provider refused it as too long."""
EMERGENCY_CHARS = 10_000
"""Characters of each message that such a request keeps at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextInputs(ViewInputs):
    """Everything a request is built from: the inputs of its view, its tools and its temperature."""

    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None

    @property
    def fixed_tokens(self) -> int:
        """Return the tokens of system prompt and profile, which begin every request. Tools are not counted."""
        return self.system.tokens + (self.profile.tokens if self.profile else 0)

    def fit(self) -> View:
        """Return the view. Raise memory.errors.ContextError if the question or the system prompt does not fit."""
        return fit_view(replace(self, tools_tokens=count_tools(self.tools)))


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of the request and its source."""

    source: Source
    message: Message
    tokens: int


@dataclass(frozen=True)
class AssembledContext:
    """A request that fits. `earlier` holds what earlier questions recalled, which stays in its place; `data_urls` fills
    the images in view, by file id."""

    inputs: ContextInputs
    view: View
    recall: Message | None = None
    earlier: Recalled = field(default_factory=lambda: NOTHING)
    data_urls: Mapping[str, str] = field(default_factory=dict)
    shrinks: int = 0

    @cached_property
    def parts(self) -> ViewParts:
        """Return the tokens of each part of the request."""
        return self.view.parts(self.recall, self.earlier)

    @property
    def total_tokens(self) -> int:
        """Return the size of the request in tokens, calibrated to the model's own counts."""
        return self.parts.total

    @property
    def kept_out_tokens(self) -> int:
        """Return the tokens that compaction saves: the whole conversation, at most the budget, less what is sent."""
        checkpoint = self.view.checkpoint
        messages = self.inputs.messages
        behind = [each for each in messages if not (checkpoint and checkpoint.covers(each))]
        whole = (
            self.inputs.fixed_tokens + self.view.tools_tokens + total_tokens([*behind, *self.inputs.notes])
        )
        whole += self.inputs.left_out.tokens + self.inputs.question.tokens
        whole += checkpoint.covered_tokens if checkpoint else 0
        held = min(self.inputs.calibration.apply(whole), self.budget_tokens)
        return max(0, held - self.total_tokens)

    @property
    def budget_tokens(self) -> int:
        return self.view.budget_tokens

    @property
    def limit_tokens(self) -> int:
        """Return the limit of the whole request: the budget plus what system prompt and tools take of the reserve."""
        fixed = self.parts.system + self.parts.tools
        return self.budget_tokens + min(fixed, self.inputs.budget.reserve_tokens)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Return the messages of the request, with images as references."""
        return self.view.messages(self.recall, self.earlier)

    @property
    def request(self) -> ModelRequest:
        """Return the request with the bytes of its images."""
        return ModelRequest(
            messages=tuple(with_data_urls(message, self.data_urls) for message in self.messages),
            max_output_tokens=self.inputs.budget.output_for(self.total_tokens),
            tools=self.inputs.tools,
            temperature=self.inputs.temperature,
        )

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Return the messages in order. Their tokens add up to the total; the tools count with the system prompt."""
        sizes = [message.tokens for message in self.messages]
        sizes[0] += self.view.tools_tokens
        return tuple(
            Piece(self._source_of(message), message, tokens)
            for message, tokens in zip(
                self.messages, self.inputs.calibration.apply_to_parts(sizes), strict=True
            )
        )

    @property
    def image_ids(self) -> tuple[str, ...]:
        """Return the ids of the images in view."""
        return tuple(
            part.file_id for message in self.messages for part in message.parts if isinstance(part, ImagePart)
        )

    def shrunk(self, window_tokens: int | None, sent_tokens: int | None = None) -> AssembledContext | None:
        """Return a smaller context after an overflow: first half of it, then summary and question alone, then None.

        `window_tokens` is the window the provider named; `sent_tokens` is the size sent, if larger than this context.
        """
        sent = sent_tokens or self.total_tokens
        attempts = (self._half, self._bare)[self.shrinks :]
        for shrinks, shrink in enumerate(attempts, self.shrinks + 1):
            smaller = shrink(self._budget_in(window_tokens), sent)
            try:
                view = smaller.fit()
            except ContextError:
                continue  # half may be too little for system prompt, tools and question
            shrunk = replace(self, inputs=smaller, view=view, recall=None, earlier=NOTHING, shrinks=shrinks)
            # A request of the same length would be refused again, unless less room is reserved for its answer.
            output = self.inputs.budget.output_for(sent)
            if shrunk.total_tokens < sent or shrunk.request.max_output_tokens < output:
                return shrunk
        return None

    def _budget_in(self, window_tokens: int | None) -> TokenBudget:
        """Return the budget within the window that the provider named."""
        budget = self.inputs.budget
        if not window_tokens or window_tokens >= budget.context_size:
            return budget
        # The window is smaller than the operator configured, so the configured output limit might take most of it.
        output = min(budget.max_output_tokens, window_tokens // 4)
        return TokenBudget(window_tokens, output, budget.system_reserve, budget.input_limit)

    def _half(self, budget: TokenBudget, sent_tokens: int) -> ContextInputs:
        policy = self.inputs.policy
        # Halve what was sent, too: if the estimate was too low, half of the budget might be just as long.
        half = max(1, min(budget.input_tokens, sent_tokens) // 2)
        return replace(
            self.inputs,
            reminder=self._reminder(),
            budget=replace(budget, input_limit=half),
            policy=policy.model_copy(
                update={
                    "keep_recent": policy.keep_recent // 2,
                    "max_turns": min(policy.max_turns or EMERGENCY_TURNS, EMERGENCY_TURNS),
                    "message_char_limit": min(policy.message_char_limit, EMERGENCY_CHARS),
                    "old_result_char_limit": min(policy.old_result_char_limit, EMERGENCY_CHARS),
                }
            ),
        )

    def _reminder(self) -> Message | None:
        """Return a reminder of what is removed now; None if the checkpoint has one already."""
        if self.inputs.checkpoint and self.inputs.checkpoint.reminder:
            return None
        return build_reminder(tool_notes(self.inputs.tools), list_achieved(self.inputs.messages))

    def _bare(self, budget: TokenBudget, _sent_tokens: int) -> ContextInputs:
        messages = self.inputs.messages
        # Without a sample no extract is made, and only the previous summary is left.
        left_out = LeftOut(self.inputs.left_out.count + len(messages), last_position(messages))
        return replace(
            self.inputs,
            budget=budget,
            messages=(),
            left_out=left_out,
            notes=(),
            reminder=None,
            profile=None,
        )

    def _source_of(self, message: Message) -> Source:
        # Compare by identity, because a message of the history may have the same text.
        if message is self.view.system:
            return "system"
        if message is self.view.profile:
            return "profile"
        if message is self.view.question:
            return "question"
        if message is self.view.summary:
            return "summary"
        if message is self.view.reminder:
            return "reminder"
        if any(message is note for note in self.view.notes):
            return "hook"
        return "recall" if message.kind == "recall" else "history"


def tool_notes(tools: Sequence[ToolSpec]) -> list[ToolNote]:
    """Return the name, the first sentence of the description and the server of each tool, for a reminder."""
    return [
        ToolNote(tool.name, tool.description.partition(". ")[0], tool.server or OWN_TOOLS) for tool in tools
    ]
