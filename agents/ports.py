"""Declare what the tool loop needs from outside: records of calls, the user's consent, new messages, a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from agents.tools.protocol import Tool, ToolCaller, ToolImage
from memory.types import ImagePart, Message, ToolResultPart

CallState = Literal["requested", "waiting", "running", "done", "failed", "denied", "interrupted"]
Decision = Literal["approved", "denied", "timed_out"]
CallKey = tuple[str, str]
"""(name of the tool, arguments in one canonical form)."""


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call that the model made. `call_id` is ours, never the model's; `step` counts the model calls of the run."""

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
    """The whole text, before anything was cut from it."""


@dataclass(frozen=True, slots=True)
class EarlierCall:
    """A call of an earlier attempt at the same question. `text` is its result; None where it is not known."""

    text: str | None


class CallRecords(Protocol):
    """Records each call before it runs, and its result before the model sees it."""

    async def record_calls(self, calls: Sequence[RequestedCall]) -> None:
        """Record all calls of one step, before any of them runs."""

    async def record_running(self, call: RequestedCall) -> None:
        """Record that a call which waited for approval runs now."""

    async def record_result(self, result: CallResult) -> None:
        """Record a result. The last one of a step makes all of them part of the conversation, in the calls' order."""


class Consents(Protocol):
    async def ask(self, call: RequestedCall) -> Decision:
        """Return the user's decision, or `timed_out`."""
        ...


class Inbox(Protocol):
    async def take(self) -> Sequence[Message]:
        """Return what the user sent during the run, oldest first, each message once."""
        ...


class ResultStore(Protocol):
    """Keeps what is too large for the context."""

    async def keep_text(self, part: ToolResultPart) -> str:
        """Return a reference by which the agent can read the text later. Raise ToolFailure where it is not kept."""
        ...

    async def keep_image(self, image: ToolImage, tool_name: str) -> str:
        """Return a reference. Raise ToolFailure where the image is not kept, or is none."""
        ...


class _NoRecords:
    async def record_calls(self, calls: Sequence[RequestedCall]) -> None: ...

    async def record_running(self, call: RequestedCall) -> None: ...

    async def record_result(self, result: CallResult) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of one loop and its ports.

    Without `consents` no call that needs one is run; without `store` a result that is too large is refused.
    """

    tools: Sequence[Tool]
    caller: ToolCaller
    records: CallRecords = field(default_factory=_NoRecords)
    consents: Consents | None = None
    inbox: Inbox | None = None
    store: ResultStore | None = None
    earlier: Mapping[CallKey, EarlierCall] = field(default_factory=dict)
