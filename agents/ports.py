"""What the tool loop asks of the world: a record of its calls, the user's consent, what was sent meanwhile, a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agents.tools.protocol import Tool, ToolCaller, ToolImage
from memory.types import ImagePart, Message, ToolResultPart

CallState = Literal["requested", "waiting", "running", "done", "failed", "denied", "interrupted"]
Decision = Literal["approved", "denied", "timed_out"]
CallKey = tuple[str, str]
"""The name of a tool and its arguments in one canonical form."""


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call the model asked for. `call_id` is ours, never the model's; `step` counts the model calls of the run."""

    call_id: str
    name: str
    arguments: str
    step: int
    state: CallState = "requested"
    """`running` where it starts at once, `waiting` where the user has to approve it first."""
    is_idempotent: bool = True


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended. `part` is what the model sees of it."""

    call: RequestedCall
    state: CallState
    part: ToolResultPart
    images: tuple[ImagePart, ...] = ()
    is_cut: bool = False
    whole: str = field(default="", repr=False)
    """What the tool said before anything was cut from it."""


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call of an attempt at the same question that did not come to its end. `text` None: nobody knows whether it
    happened."""

    text: str | None


class CallRecords(Protocol):
    """Each call is recorded before it runs, and its result before the model sees it."""

    async def record_calls(self, calls: Sequence[RequestedCall]) -> None:
        """All calls of one step, before any of them runs."""

    async def record_running(self, call: RequestedCall) -> None:
        """A call that waited for its approval runs now."""

    async def record_result(self, result: CallResult) -> None:
        """One call has ended. With the last of its step they are part of the conversation, in the calls' order."""


class Consents(Protocol):
    async def ask(self, call: RequestedCall) -> Decision:
        """Returns when the user decided, or did not in time."""
        ...


class Inbox(Protocol):
    async def take(self) -> Sequence[Message]:
        """What the user sent while the loop was at work, oldest first, each once."""
        ...


class ResultStore(Protocol):
    """A place for what is too large for the context."""

    async def keep_text(self, part: ToolResultPart) -> str:
        """A reference under which the agent can read it later. Raises ToolFailure where it cannot be kept."""
        ...

    async def keep_image(self, image: ToolImage, tool_name: str) -> str:
        """A reference, as for a text. Raises ToolFailure for what is no image, too."""
        ...


class _NoRecords:
    async def record_calls(self, calls: Sequence[RequestedCall]) -> None: ...

    async def record_running(self, call: RequestedCall) -> None: ...

    async def record_result(self, result: CallResult) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of one loop, and how they may be used. Without `consents` nothing that needs one is run; without
    `store` a result that is too large is refused."""

    tools: Sequence[Tool]
    caller: ToolCaller
    records: CallRecords = field(default_factory=_NoRecords)
    consents: Consents | None = None
    inbox: Inbox | None = None
    store: ResultStore | None = None
    earlier: Mapping[CallKey, EarlierCall] = field(default_factory=dict)
