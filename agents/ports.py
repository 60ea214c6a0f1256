"""Define what the tool loop needs from outside: call records, the user's consent, new messages, a result store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agents.tools.protocol import Tool, ToolCaller, ToolImage
from memory.types import ImagePart, Message, ToolResultPart

CallState = Literal["requested", "waiting", "running", "done", "failed", "denied", "interrupted"]
Decision = Literal["approved", "denied", "timed_out"]
CallKey = tuple[str, str]
"""(tool name, arguments in a canonical form)."""


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call made by the model. `call_id` is ours, not the model's; `step` counts the model calls of the run."""

    call_id: str
    name: str
    arguments: str
    step: int
    state: CallState = "requested"
    """`running` if it starts at once, `waiting` if the user has to approve it first."""
    is_idempotent: bool = True


@dataclass(frozen=True, slots=True)
class CallResult:
    """The outcome of a call. `part` is what the model sees of it."""

    call: RequestedCall
    state: CallState
    part: ToolResultPart
    images: tuple[ImagePart, ...] = ()
    is_cut: bool = False
    whole: str = field(default="", repr=False)
    """The full text, before truncation."""


class CallRecords(Protocol):
    """Records each call before it runs, and its result before the model sees it."""

    async def record_calls(self, calls: Sequence[RequestedCall]) -> None:
        """Record all calls of one step before any of them runs."""

    async def record_running(self, call: RequestedCall) -> None:
        """Record that a call that waited for approval is now running."""

    async def record_result(self, result: CallResult) -> None:
        """Record a result. The last one of a step adds all of them to the conversation, in the order of the calls."""


class Consents(Protocol):
    async def ask(self, call: RequestedCall) -> Decision:
        """Return the user's decision, or `timed_out`."""
        ...


class Inbox(Protocol):
    async def take(self) -> Sequence[Message]:
        """Return the messages that the user sent during the run, oldest first, each only once."""
        ...


class ResultStore(Protocol):
    """Stores results that are too large for the context."""

    async def keep_text(self, part: ToolResultPart) -> str:
        """Return a reference by which the agent can read the text later. Raise ToolFailure if it is not stored."""
        ...

    async def keep_image(self, image: ToolImage, tool_name: str) -> str:
        """Return a reference. Raise ToolFailure if the image is not stored or is invalid."""
        ...


class _NoRecords:
    async def record_calls(self, calls: Sequence[RequestedCall]) -> None: ...

    async def record_running(self, call: RequestedCall) -> None: ...

    async def record_result(self, result: CallResult) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of one loop and its ports.

    Without `consents`, calls that need consent are not run; without `store`, a result that is too large is refused.
    `earlier` has the result of each call that an earlier attempt made; None if it is unknown whether it happened.
    """

    tools: Sequence[Tool]
    caller: ToolCaller
    records: CallRecords = field(default_factory=_NoRecords)
    consents: Consents | None = None
    inbox: Inbox | None = None
    store: ResultStore | None = None
    earlier: Mapping[CallKey, str | None] = field(default_factory=dict)
