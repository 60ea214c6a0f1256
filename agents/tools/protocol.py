"""Define a tool: a name and a schema for the model, traits for the loop, and one coroutine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.types import ToolSpec

Right = Literal["memory", "conversation", "files", "web", "server"]
"""What a tool accesses: the user's memory, this conversation, the user's files, the web, an operator's MCP server."""


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """What the loop needs to know before a call. The defaults are for a tool that only reads."""

    timeout_s: float = 30.0
    is_idempotent: bool = True
    """False: a call interrupted by a crash is not repeated, because it may have happened."""
    needs_consent: bool = False
    """True: the user has to approve each call."""
    result_limit_tokens: int | None = None
    """None: the policy's `tool_result_limit`."""
    shows_images: bool = False
    """True: the model sees the images of the results until the turn ends. Otherwise it gets their references."""
    rights: frozenset[Right] = frozenset()
    """What the tool accesses. It is not offered where one of these is not allowed."""


@dataclass(frozen=True, slots=True)
class ResultLimit:
    """How much of one result the model sees."""

    tokens: int
    chars: int


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The user for whom a tool acts, and the run; nothing a model writes can change them. A result over `limit` is cut,
    so tools that read page by page return less; None if unknown."""

    user_id: str
    conversation_id: str
    run_id: str
    limit: ResultLimit | None = None


@dataclass(frozen=True, slots=True)
class ToolImage:
    """`data` is the file's bytes; the loop stores them and shows the model a reference."""

    data: bytes = field(repr=False)
    mime_type: str


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """`text` is the whole result: the loop cuts what is too large. It is data for the model, never instructions."""

    text: str
    images: tuple[ToolImage, ...] = ()


class ToolFailure(Exception):
    """The tool failed; the message is one sentence for the model."""


class ToolUncertain(ToolFailure):
    """The connection broke after the call was sent: it may or may not have happened."""


class Tool(Protocol):
    """A tool. `call` raises ToolFailure; any other error fails this call only."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def traits(self) -> ToolTraits: ...

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        """Run the tool. The arguments are valid for `spec.parameters`."""
        ...
