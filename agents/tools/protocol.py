"""What a tool is: a name and a schema for the model, traits for the loop, and one coroutine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agents.types import ToolSpec

Right = Literal["memory", "conversation", "files", "web", "server"]
"""What a tool reaches: the user's memory, this conversation, the user's files, the web, an operator's MCP server."""


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """What the loop needs to know before a call. The defaults are for a tool that only reads."""

    timeout_s: float = 30.0
    is_idempotent: bool = True
    """False: a call that a crash interrupted is not repeated, because it may have happened."""
    needs_consent: bool = False
    """True: the user is asked to approve each call."""
    result_limit_tokens: int | None = None
    """None: the policy's `tool_result_limit`."""
    shows_images: bool = False
    """True: the model sees the images of its results until the turn ends. Else it gets their references."""
    rights: frozenset[Right] = frozenset()
    """Ports that it needs. Without one of them the tool is not offered."""


@dataclass(frozen=True, slots=True)
class ResultLimit:
    """How much of one result the model sees."""

    tokens: int
    chars: int


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """With whose rights a tool acts, and for which run; nothing a model writes can change it. `limit`: what is over it
    will be cut, so that who reads page by page gives smaller ones; None where nobody knows."""

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
    """`text` is the whole result: the loop cuts and offloads what is too large. Data for the model, never orders."""

    text: str
    images: tuple[ToolImage, ...] = ()


class ToolFailure(Exception):
    """The tool failed; the message is one sentence for the model."""


class ToolUncertain(ToolFailure):
    """The connection broke after the call was sent: it may or may not have happened."""


class Tool(Protocol):
    """A tool. `call` raises ToolFailure; any other error ends this call only."""

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def traits(self) -> ToolTraits: ...

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        """Run the tool with arguments that fit `spec.parameters`."""
        ...
