"""What a call took where the provider does not say: our own estimate, marked as such."""

from __future__ import annotations

from agents.types import (
    ModelItem,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
    ToolSpec,
)
from agents.wire import tools_json
from memory.tokens import estimate_text, estimate_tools, total_tokens


def count_tools(tools: tuple[ToolSpec, ...]) -> int:
    return estimate_tools(tools_json(tools)) if tools else 0


def count_request(request: ModelRequest) -> int:
    return total_tokens(request.messages) + count_tools(request.tools)


class OutputText:
    """Everything a model wrote in one call, for counting only."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, item: ModelItem) -> None:
        match item:
            case TextDelta() | ReasoningDelta():
                self._pieces.append(item.text)
            case ToolCallDelta():
                self._pieces.append(item.name + item.arguments)

    def count(self) -> int:
        return estimate_text("".join(self._pieces))


def estimate_usage(request: ModelRequest, output: OutputText) -> TokenUsage:
    return TokenUsage(input_tokens=count_request(request), output_tokens=output.count(), exact=False)
