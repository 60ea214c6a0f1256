"""Estimate the tokens of a call if the provider does not report them, and limit how much a model may write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from agents.chat_models.wire import write_json, write_tool
from agents.errors import ModelError, was_refused
from agents.types import (
    Finished,
    ModelItem,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    ToolSpec,
)
from memory.tokens import estimate_text, total_tokens

MOST_COUNTED = 200
_counted: dict[tuple[int, ...], tuple[tuple[ToolSpec, ...], int]] = {}
"""Keyed by the ids of the tools. The tools are kept, because a new object could reuse the id of a deleted one."""


def count_tools(tools: tuple[ToolSpec, ...]) -> int:
    """Return the estimated tokens of the schemas as sent. Results are cached for the same tool objects."""
    if not tools:
        return 0
    key = tuple(map(id, tools))
    known = _counted.get(key)
    if known is None:
        if len(_counted) >= MOST_COUNTED:
            _counted.clear()
        schemas = write_json([write_tool(tool) for tool in tools])
        known = _counted[key] = (tools, estimate_text(schemas))
    return known[1]


def count_request(request: ModelRequest) -> int:
    """Return the estimated tokens of messages and tools."""
    return total_tokens(request.messages) + count_tools(request.tools)


COUNTED_CHARS = 4_096
CALL_DELTA_BYTES = 16
"""Counted for each fragment of a tool call besides its text, because even an empty one takes memory."""


class OutputText:
    """Counts what a model writes in one call, without keeping the text."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.text = _CountedText()
        """Text and tool calls."""
        self.reasoning = _CountedText()

    def add(self, item: ModelItem) -> None:
        match item:
            case TextDelta():
                self._add(self.text, item.text)
            case ReasoningDelta():
                self._add(self.reasoning, item.text)
            case ToolCallDelta():
                self.size_bytes += CALL_DELTA_BYTES
                self._add(self.text, item.name + item.arguments)

    def _add(self, counted: _CountedText, text: str) -> None:
        self.size_bytes += len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
        counted.add(text)

    def count(self) -> int:
        """Return the estimated tokens of text, tool calls and reasoning."""
        return self.text.count() + self.reasoning.count()


class _CountedText:
    """Counts text in blocks, which are then dropped. `tokens` is the count of the full blocks, which leave out up
    to COUNTED_CHARS at the end."""

    def __init__(self) -> None:
        self.tokens = 0
        self._pieces: list[str] = []
        self._chars = 0

    def add(self, text: str) -> None:
        self._pieces.append(text)
        self._chars += len(text)
        if self._chars >= COUNTED_CHARS:
            self.tokens = self.count()
            self._pieces.clear()
            self._chars = 0

    def count(self) -> int:
        return self.tokens + estimate_text("".join(self._pieces))


TOLERANCE = 2
SLACK_TOKENS = 16_000
"""By our estimate, an answer may have TOLERANCE times its limit plus SLACK_TOKENS. The estimate is off by up to 2.5
times outside Latin scripts, and servers that ignore a low limit still end their answers."""
LEAST_REASONING_TOKENS = 64_000
"""Some providers do not count reasoning towards the output limit."""


@dataclass(frozen=True, slots=True)
class OutputBounds:
    """How much a model may write in one call before we close its stream; 0 tokens mean no limit."""

    tokens: int
    reasoning_tokens: int
    size_bytes: int

    @classmethod
    def of(cls, request: ModelRequest, max_bytes: int) -> OutputBounds:
        """Return the bounds of a request: its own limit, with tolerance for servers that count differently."""
        if not request.max_output_tokens:
            return cls(0, 0, max_bytes)
        asked = request.max_output_tokens
        return cls(_tolerated(asked), _tolerated(max(asked, LEAST_REASONING_TOKENS)), max_bytes)

    def are_passed(self, output: OutputText) -> bool:
        """Return whether the model has written too much."""
        return (
            output.size_bytes >= self.size_bytes
            or 0 < self.tokens < output.text.tokens
            or 0 < self.reasoning_tokens < output.reasoning.tokens
        )

    def keep(self, items: Iterable[ModelItem], output: OutputText) -> Iterator[ModelItem]:
        """Count and yield items until a bound is passed."""
        for item in items:
            item = self.cut(item, output)
            output.add(item)
            yield item
            if self.are_passed(output):
                return

    def cut(self, item: ModelItem, output: OutputText) -> ModelItem:
        """Return the delta truncated to the remaining bytes: a single delta may exceed the whole limit."""
        room = max(0, self.size_bytes - output.size_bytes)
        match item:
            case TextDelta() | ReasoningDelta():
                return replace(item, text=_fitting(item.text, room))
            case ToolCallDelta():
                return replace(item, arguments=_fitting(item.arguments, room))
        return item


def _fitting(text: str, room: int) -> str:
    """Return the longest prefix of a text that takes at most `room` bytes."""
    # Avoid encoding most texts: a character takes at most four bytes.
    if 4 * len(text) <= room:
        return text
    content = text.encode("utf-8", "surrogatepass")
    return text if len(content) <= room else content[:room].decode("utf-8", "ignore")


def _tolerated(tokens: int) -> int:
    return tokens * TOLERANCE + SLACK_TOKENS


def estimate_usage(request: ModelRequest, output: OutputText) -> TokenUsage:
    """Return our own estimate, marked as not exact."""
    return TokenUsage(input_tokens=count_request(request), output_tokens=output.count(), exact=False)


class CallMeter:
    """Measures what a call and its retries use. `usage` is the provider's count; None until it is reported."""

    def __init__(self) -> None:
        self.output = OutputText()
        self.usage: TokenUsage | None = None
        self._is_under_way = False
        self._was_read = False

    def add(self, item: ModelItem) -> None:
        # The first item is the request as sent.
        self._is_under_way = True
        self.output.add(item)
        if isinstance(item, Finished):
            self.usage = item.usage

    def fail(self, error: ModelError) -> None:
        """Record a failed attempt. An attempt that ends otherwise, e.g. a cancelled one, counts as under way."""
        self._was_read |= self._is_under_way and not was_refused(error)
        self._is_under_way = False

    def read(self, request: ModelRequest) -> TokenUsage | None:
        """Return what the call used, estimated if the provider did not report it. Return None if the call cost nothing,
        because it was not sent, or was refused before anything was written."""
        if self.usage is None and not (self._is_under_way or self._was_read or self.output.count()):
            return None
        return self.usage or estimate_usage(request, self.output)
