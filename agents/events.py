"""The events of a conversation: one schema for WebSocket, SSE and log (docs/realtime.md).

Facts are stored in the log and carry `seq`; deltas are live only and carry `offset`. The log keeps ids and small facts:
texts stay in the rows that hold them, and are read from there when an event is replayed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents.loop.hooks import HookLevel

EndStatus = Literal["complete", "stopped", "failed", "interrupted"]
CompactState = Literal["started", "done", "failed", "undone"]


def _without(told: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in names}


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, protected_namespaces=())

    v: Literal[1] = 1
    conversation_id: str
    run_id: str | None = None
    at: datetime


class _Fact(_Event):
    seq: int | None = None
    """None until the log has assigned a number."""
    not_stored: ClassVar[Collection[str]] = ()
    """Fields that the log leaves out, because other rows hold their content."""

    def payload(self) -> dict[str, Any]:
        """Return the event as sent to readers."""
        return self.model_dump(mode="json", exclude_none=True)

    def stored(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of `told` that the log keeps."""
        return _without(told, self.not_stored)


class _MessageFact(_Fact):
    """A fact about a message. The log keeps only its id, kind, parent and its position at that time."""

    message: dict[str, Any]
    stored_of_message: ClassVar[tuple[str, ...]] = ("id", "kind", "parent", "position")

    def stored(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {**told, "message": {name: self.message[name] for name in self.stored_of_message}}


class MessageCreated(_MessageFact):
    type: Literal["message.created"] = "message.created"


class RunStarted(_Fact):
    type: Literal["run.started"] = "run.started"
    message_id: str
    parent: str | None = None
    model: str
    mode: str


class Compact(_Fact):
    """A compaction began, ended, failed or was undone; the page shows a CompactDivider."""

    type: Literal["compact"] = "compact"
    state: CompactState
    compaction_id: str
    message_count: int
    kept_count: int
    strategy: str
    tokens_before: int
    tokens_after: int
    last_position: int
    text: str
    is_extract: bool = False
    """Whether no model wrote the summary, so that it consists of sentences copied from the conversation."""


class RecalledItem(_Value):
    """`start` and `end` are its place in the text of its source; readers get the preview instead."""

    source: dict[str, Any]
    tokens: int
    preview: str
    start: int = Field(default=0, exclude=True)
    end: int = Field(default=0, exclude=True)


class Recall(_Fact):
    """`items` are the best of the recalled items, best first; the totals count all of them."""

    type: Literal["recall"] = "recall"
    items: list[RecalledItem]
    total_count: int = 0
    total_tokens: int = 0

    def stored(self, told: Mapping[str, Any]) -> dict[str, Any]:
        items = [
            {"source": item.source, "tokens": item.tokens, "start": item.start, "end": item.end}
            for item in self.items
        ]
        return {**told, "items": items}


class ContextParts(_Value):
    system: int = 0
    profile: int = 0
    tools: int = 0
    summary: int = 0
    history: int = 0
    recall: int = 0


class Context(_Fact):
    type: Literal["context"] = "context"
    used_tokens: int
    budget_tokens: int
    limit_tokens: int = 0
    """The limit of the whole request: the budget plus what system prompt and tools take of the reserve."""
    parts: ContextParts
    exact: bool
    left_out: int = 0
    """Messages that are neither in the request nor in a summary yet; at most an extract replaces them."""
    left_out_last_position: int | None = None
    """Position of the last of these messages; None if there are none."""
    left_out_extract: bool = False
    """Whether an extract replaces them until their summary is written."""


class PlannedStep(_Value):
    """`result` is the beginning of the step's result, or the reason why there is none."""

    id: str
    title: str
    task: str
    dependencies: list[str]
    round: int
    state: Literal["pending", "running", "done", "failed", "skipped"]
    attempts: int
    result: str = ""


class Plan(_Fact):
    """The current state of all steps of all rounds; a later event replaces an earlier one."""

    type: Literal["plan"] = "plan"
    round: int
    steps: list[PlannedStep]

    def stored(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {**told, "steps": [_without(step, ("title", "task", "result")) for step in told["steps"]]}


class Tool(_Fact):
    type: Literal["tool"] = "tool"
    call_id: str
    name: str
    state: str
    step: int = 0
    plan_step: str | None = None
    hook_id: str | None = None
    arguments: str
    arguments_cut: bool = False
    preview: str = ""
    truncated: bool = False
    offload_ref: str | None = None
    not_stored: ClassVar[Collection[str]] = (
        "arguments",
        "arguments_cut",
        "preview",
        "truncated",
        "offload_ref",
    )


class MovedMessage(_Value):
    message_id: str
    position: int


class MessageMoved(_Fact):
    """Messages sent during a run got their final position: before its answer if the model has seen them (`kind`
    injected), or after it, as ordinary messages that are answered next."""

    type: Literal["message.moved"] = "message.moved"
    kind: str
    items: list[MovedMessage]


class RunNotice(_Fact):
    """The run does something on its own, such as retrying; `text` is one sentence."""

    type: Literal["run.notice"] = "run.notice"
    kind: str
    text: str


class HookFired(_Fact):
    """A hook did something; `text` says what, `level` is where it was declared, `call_id` the tool call it made."""

    type: Literal["hook"] = "hook"
    hook_id: str
    action: str
    text: str
    level: HookLevel | None = None
    call_id: str | None = None

    def stored(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """Return the stored fields without the result of a tool. Any other text is the one declared in the hook."""
        return dict(told) if self.call_id is None else _without(told, ("text",))


class ReasoningDelta(_Event):
    type: Literal["reasoning.delta"] = "reasoning.delta"
    message_id: str
    offset: int
    text: str


class TextDelta(_Event):
    type: Literal["text.delta"] = "text.delta"
    message_id: str
    offset: int
    text: str


class MessageSnapshot(_Event):
    type: Literal["message.snapshot"] = "message.snapshot"
    message_id: str
    offset: int
    text: str


class MessageCompleted(_MessageFact):
    type: Literal["message.completed"] = "message.completed"


class Usage(_Fact):
    type: Literal["usage"] = "usage"
    purpose: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None = None
    exact: bool


class RunError(_Value):
    category: str
    message: str
    detail: str = ""


class UsageTotals(_Value):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    compaction_tokens: int = 0
    cost: float | None = None


class RunFinished(_Fact):
    """The last event of a run; every run has exactly one."""

    type: Literal["run.finished"] = "run.finished"
    status: EndStatus
    error: RunError | None = None
    usage: UsageTotals
    not_stored: ClassVar[Collection[str]] = ("error",)


class MemoryWritten(_Fact):
    type: Literal["memory.written"] = "memory.written"
    entry_id: str
    day: str
    preview: str
    not_stored: ClassVar[Collection[str]] = ("preview",)


class MessageForgotten(_MessageFact):
    """A message after some or all of its words were forgotten."""

    type: Literal["message.forgotten"] = "message.forgotten"


class MessageEdited(_MessageFact):
    """A message after its user edited it: it was sent during a run, and no model call had seen it."""

    type: Literal["message.edited"] = "message.edited"


class MessagePinned(_MessageFact):
    """A message after its user pinned or unpinned it."""

    type: Literal["message.pinned"] = "message.pinned"
    stored_of_message: ClassVar[tuple[str, ...]] = (*_MessageFact.stored_of_message, "pinned")


class ForgetProposed(_Fact):
    """The user asked to forget something; the matches wait for confirmation (`/memory/forget/confirm`)."""

    type: Literal["memory.forget_proposed"] = "memory.forget_proposed"
    proposal_id: str
    message_id: str
    item_count: int


class MemoryProposed(_Fact):
    """Like `memory.written`, for an entry that waits for its user's approval."""

    type: Literal["memory.proposed"] = "memory.proposed"
    entry_id: str
    day: str
    preview: str
    not_stored: ClassVar[Collection[str]] = ("preview",)


class ConversationUpdated(_Fact):
    """The current state of the conversation; readers also get its title and model at the top level."""

    type: Literal["conversation.updated"] = "conversation.updated"
    conversation: dict[str, Any]
    not_stored: ClassVar[Collection[str]] = ("title", "model")
    not_stored_of_it: ClassVar[Collection[str]] = ("title", "context_policy", "hooks", "last_seq")

    def payload(self) -> dict[str, Any]:
        shown = {**self.conversation, "last_seq": self.seq}
        return {**super().payload(), "title": shown["title"], "model": shown["model"], "conversation": shown}

    def stored(self, told: Mapping[str, Any]) -> dict[str, Any]:
        shown = _without(told["conversation"], self.not_stored_of_it)
        return {**super().stored(told), "conversation": shown}


class ConversationAttention(_Fact):
    """What waits for the user in this conversation has changed; fields that are None have not."""

    type: Literal["conversation.attention"] = "conversation.attention"
    unread: bool | None = None
    waiting_calls: int | None = None


class ConversationDeleted(_Event):
    """The conversation was deleted or trashed. Not a fact, because nobody may read the log of such a conversation."""

    type: Literal["conversation.deleted"] = "conversation.deleted"


Fact = (
    MessageCreated
    | RunStarted
    | Compact
    | Recall
    | Context
    | Plan
    | Tool
    | MessageMoved
    | MessageCompleted
    | Usage
    | RunNotice
    | HookFired
    | RunFinished
    | MemoryWritten
    | MessageForgotten
    | MessageEdited
    | MessagePinned
    | ForgetProposed
    | MemoryProposed
    | ConversationUpdated
    | ConversationAttention
)
Live = ReasoningDelta | TextDelta | MessageSnapshot | ConversationDeleted
"""Events that the log does not keep."""
Event = Annotated[Fact | Live, Field(discriminator="type")]
