"""Response schemas of the API, for its description and validation. `shapes` builds most of the values."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from agents.loop.hooks import HookLevel
from agents.requests.manifest import PieceSource
from chatapp.conversations.schemas.messages import Message, RunUsage
from chatapp.operations.http.schemas import Moment, Shape


class RunError(Shape):
    category: str
    message: str


class Answer(Shape):
    message: Message
    usage: RunUsage
    run_id: str
    compact: dict[str, Any] | None = Field(None, description="The last `compact` event of the run, if any.")


class Accepted(Shape):
    run_id: str
    message_id: str = Field(description="The message that was sent.")
    answer_id: str = Field(description="The message the answer is written to.")
    seq: int


class Injected(Accepted):
    injected: bool = Field(
        description="Whether it was added to the active run; if false, it has its own run."
    )


class PlannedStep(Shape):
    id: str
    title: str
    task: str
    dependencies: list[str]
    round: int = Field(description="Above 1: planned again, because the results were not enough.")
    state: Literal["pending", "running", "done", "failed", "skipped"]
    attempts: int
    result: str = Field(description="The beginning of what it found, or why there is nothing.")


class Run(Shape):
    id: str
    conversation_id: str
    status: Literal["queued", "running", "complete", "stopped", "failed", "interrupted"]
    message_id: str = Field(description="The message the answer is written to.")
    error: RunError | None
    usage: RunUsage
    mode: Literal["react", "plan", "auto"] | None = Field(
        description="How it is answered; null until it has started."
    )
    plan: list[PlannedStep] | None = Field(description="In plan mode, the present state of its steps.")
    started_at: Moment | None
    finished_at: Moment | None


class SentRequest(Shape):
    n: int = Field(description="Its number in its run, from 1.")
    purpose: str
    model: str
    sha256: str = Field(description="Of the bytes of the body that were sent.")
    tokens: int = Field(description="As estimated when it was sent.")
    created_at: Moment


class SentRequests(Shape):
    items: list[SentRequest]


class SentPiece(Shape):
    source: PieceSource = Field(description="Why it was in the request.")
    state: Literal["sent", "deleted", "forgotten"] = Field(
        description="`deleted`: the message was deleted; `forgotten`: a text that was stored only for "
        "requests was forgotten."
    )
    role: str
    message_id: str | None
    position: int | None
    tokens: int
    content: Any = Field(description="As in a message; a placeholder if it was deleted or forgotten.")


class ShownRequest(SentRequest):
    verified: bool = Field(description="Whether `body` is, byte for byte, the one that was sent.")
    body: dict[str, Any] = Field(
        description="The JSON that was sent, in its order; pictures as `attachment:<id>`."
    )
    pieces: list[SentPiece] = Field(
        description="Its messages in order, before servers' own rules merged any."
    )


class ToolCall(Shape):
    call_id: str
    name: str
    state: Literal["requested", "waiting", "running", "done", "failed", "denied", "interrupted"]
    step: int = Field(description="The number of the model call that asked for it; 0: a hook did.")
    plan_step: str | None = Field(description="In plan mode, the step that asked for it.")
    hook_id: str | None = Field(description="The hook that called it, where no model did.")
    arguments: str = Field(description="All of them while the call waits for a decision.")
    arguments_cut: bool = Field(description="`arguments` are the beginning only.")
    preview: str = Field(description="The beginning of the result.")
    truncated: bool = Field(description="The model sees a part of the result only.")
    offload_ref: str | None
    requested_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    duration_ms: int | None


class StepUsage(Shape):
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    exact: bool


class SentHash(Shape):
    sha256: str
    n: int


class Iteration(Shape):
    n: int
    purpose: str
    model: str
    plan_step: str | None = Field(description="In plan mode: a step's id, `planner` or `analyst`.")
    title: str | None = Field(description="Of a plan's step.")
    round: int | None = Field(description="In plan mode: the round of planning; above 1, planned again.")
    started_at: Moment
    first_token_ms: int | None
    duration_ms: int
    usage: StepUsage
    request: SentHash | None = Field(description="Shown by `/runs/{id}/requests/{n}`.")
    tools: list[ToolCall]


class FiredHook(Shape):
    hook_id: str
    action: str
    level: HookLevel | None = Field(None, description="Who declared it.")
    text: str = Field(description="What it did.")
    at: Moment
    tool: ToolCall | None = Field(description="What it called.")


class Trace(Shape):
    iterations: list[Iteration]
    hooks: list[FiredHook] = Field(description="Also those of the turn's end.")
