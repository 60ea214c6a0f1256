"""Fake tools and ports that record what happens to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.ports import CallResult, Decision, RequestedCall, ToolUse
from agents.tools.protocol import ToolCaller, ToolImage, ToolOutput, ToolTraits
from agents.types import ToolCallDelta, ToolSpec
from memory.types import Message, ToolResultPart
from tests.agents.scripted_model import Said

CALLER = ToolCaller("alice", "conversation", "run")
ANYTHING: dict[str, Any] = {"type": "object"}


@dataclass
class FakeTool:
    """A tool that passes its arguments to `answer` and returns the result."""

    name: str = "look_up"
    answer: Callable[[Mapping[str, Any]], str | ToolOutput | Awaitable[str]] = lambda arguments: "found"
    schema: dict[str, Any] = field(default_factory=lambda: dict(ANYTHING))
    traits: ToolTraits = field(default_factory=ToolTraits)
    calls: list[Mapping[str, Any]] = field(default_factory=list)
    callers: list[ToolCaller] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, f"Does what {self.name} says.", self.schema)

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        self.calls.append(arguments)
        self.callers.append(caller)
        said = self.answer(arguments)
        if isinstance(said, Awaitable):
            said = await said
        return said if isinstance(said, ToolOutput) else ToolOutput(said)


@dataclass
class World:
    """Implements all ports of the tool loop. `log` lists the calls to them in order."""

    log: list[tuple[str, ...]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    async def record_calls(self, calls: Sequence[RequestedCall]) -> None:
        self.log += [("requested", call.name) for call in calls]

    async def record_running(self, call: RequestedCall) -> None:
        self.log.append(("running", call.name))

    async def record_result(self, result: CallResult) -> None:
        self.log.append((result.state, result.call.name))

    async def ask(self, call: RequestedCall) -> Decision:
        return self.decisions.pop(0)

    async def take(self) -> Sequence[Message]:
        taken, self.sent = self.sent, []
        return taken

    async def keep_text(self, part: ToolResultPart) -> str:
        reference = f"tool_result-{part.call_id}.txt"
        self.texts[reference] = part.text
        return reference

    async def keep_image(self, image: ToolImage, tool_name: str) -> str:
        return f"image of {tool_name}"

    def use(self, *tools: FakeTool, **more: Any) -> ToolUse:
        ports = {"records": self, "consents": self, "inbox": self, "store": self}
        return ToolUse(tools, CALLER, **ports | more)


def calls(*wanted: tuple[str, Any], text: str = "") -> Said:
    """Return an answer with these tool calls. Arguments given as text are sent unchanged."""
    items = tuple(
        ToolCallDelta(
            index, f"theirs-{index}", name, arguments if isinstance(arguments, str) else json.dumps(arguments)
        )
        for index, (name, arguments) in enumerate(wanted)
    )
    return Said(text, items=items, reason="tool_calls")


async def never(_: Mapping[str, Any]) -> str:
    await asyncio.Event().wait()
    return ""
