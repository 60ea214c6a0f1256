"""What the API answers, for its description and as a check. `mapping` makes the values; more fields may be added."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Item = TypeVar("Item")


class Shape(BaseModel):
    model_config = ConfigDict(extra="allow", protected_namespaces=())


class ErrorBody(Shape):
    code: str = Field(description="For programs.")
    message: str = Field(description="One sentence for people.")
    details: Any = Field(None, description="For `invalid`: a list of `{field, message, type}`.")


class Error(Shape):
    error: ErrorBody


class Page(Shape, Generic[Item]):
    items: list[Item]
    next_cursor: str | None


class Me(Shape):
    id: str
    email: str
    name: str
    time_zone: str
    is_admin: bool
    scopes: list[str]
    created_at: Moment


class Model(Shape):
    id: str
    name: str
    kind: str
    is_default: bool
    context_size: int
    max_output_tokens: int


class Agent(Shape):
    id: str
    name: str
    mode: str
    model: str | None
    greeting: str
    is_default: bool
    is_mine: bool = Field(False, description="Whether you made it for yourself.")
    uses_memory: bool = True
    shares_memory: bool = Field(
        False,
        description="Whether what is remembered of your chats with it is known to everybody who talks to it. Such chats"
        " know nothing private of you.",
    )
    tools: list[str] | None = Field(None, description="By name; null is the deployment's choice.")


class AgentDetails(Agent):
    """What an operator made for everybody shows its instructions to operators only."""

    temperature: float | None
    mcp_servers: list[str] | None
    system_prompt: str | None
    context_policy: dict[str, Any] | None
    hooks: list[dict[str, Any]] | None
    notes: list[str] = Field([], description="What an import left out, because this deployment has it not.")


class UsageRow(Shape):
    key: str = Field(description="The day, model, purpose or conversation id, by `group_by`.")
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None = Field(description="In US dollars; null where no price is known.")
    kept_out_tokens: int = Field(
        description="What compaction kept out of requests: all that was said, as far as the model's input budget holds "
        "it, less what was sent."
    )
    compaction_saved: float | None = Field(
        description="The price of `kept_out_tokens`, at the share of cached tokens each call had. What the summaries "
        "cost is the cost of the purpose `compaction`."
    )
    cache_saved: float | None = Field(
        description="What `cached_tokens` would have cost more at the price of fresh ones."
    )


class UsageReport(Page[UsageRow]):
    total: UsageRow


class ActiveRun(Shape):
    id: str
    message_id: str


class Conversation(Shape):
    id: str
    title: str
    model: str | None
    agent: str | None
    shared_memory_of: str | None = Field(
        description="The agent in whose shared memory it was begun; nothing private of you is known in it."
    )
    mode: Literal["react", "plan", "auto"] | None = Field(description="Null: as its agent says.")
    pinned: bool
    archived: bool
    temporary: bool
    memory: Literal["on", "paused"]
    hooks: list[dict[str, Any]] = Field(description="Its own, after the deployment's and the agent's.")
    message_count: int
    last_seq: int
    last_activity_at: Moment
    created_at: Moment
    expires_at: Moment | None
    active_run: ActiveRun | None


class RunUsage(Shape):
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    compaction_tokens: int = 0
    cost: float | None = None


class Message(Shape):
    id: str
    conversation_id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: str | list[dict[str, Any]] = Field(description="A string where it is plain text, else parts.")
    status: Literal["streaming", "complete", "stopped", "failed", "interrupted"]
    position: int
    parent: str | None = Field(description="Of a tool call, its result and an injected message: the answer.")
    kind: Literal["message", "injected"] = Field(description="Injected: sent while an answer was written.")
    siblings: list[str] | None = Field(
        None,
        description="Ids of all messages in its place, by edits or new answers, itself too; oldest first.",
    )
    model: str | None
    usage: RunUsage | None
    created_at: Moment


class RunError(Shape):
    category: str
    message: str


class PlannedStep(Shape):
    id: str
    title: str
    task: str
    dependencies: list[str]
    round: int = Field(description="Above 1: planned anew, because the results were not enough.")
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
    mode: Literal["react", "plan", "auto"] | None = Field(description="Once it began, how it is answered.")
    plan: list[PlannedStep] | None = Field(description="In plan mode, its steps as they stand.")
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
    source: Literal["system", "summary", "reminder", "history", "injected", "recall", "hook", "question"] = (
        Field(description="Why it was in the request.")
    )
    state: Literal["sent", "deleted", "forgotten"] = Field(
        description="`deleted`: the message is gone; `forgotten`: a text that only requests held is gone."
    )
    role: str
    message_id: str | None
    position: int | None
    tokens: int
    content: Any = Field(description="As in a message; what stands in for it where it is gone.")


class ShownRequest(SentRequest):
    verified: bool = Field(description="Whether `body` is the one that was sent, to the byte.")
    body: dict[str, Any] = Field(
        description="The JSON that was sent, in its order; pictures as `attachment:<id>`."
    )
    pieces: list[SentPiece] = Field(
        description="Its messages in order, before servers' own rules merged any."
    )


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
    injected: bool = Field(description="Into the run that is going on; false: it has a run of its own.")


class ToolCall(Shape):
    call_id: str
    name: str
    state: Literal["requested", "waiting", "running", "done", "failed", "denied", "interrupted"]
    step: int = Field(description="The number of the model call that asked for it.")
    plan_step: str | None = Field(description="In plan mode, the step that asked for it.")
    arguments: str
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
    started_at: Moment
    first_token_ms: int | None
    duration_ms: int
    usage: StepUsage
    request: SentHash | None = Field(description="Shown by `/runs/{id}/requests/{n}`.")
    tools: list[ToolCall]


class Trace(Shape):
    iterations: list[Iteration]
    hooks: list[dict[str, Any]]


class Compaction(Shape):
    id: str
    status: Literal["pending", "running", "done", "failed", "undone"]
    strategy: str
    summary: str
    message_count: int
    first_position: int
    last_position: int
    tokens_before: int
    tokens_after: int
    usage: dict[str, Any]
    created_at: Moment


class CompactionPreview(Shape):
    preview: Literal[True]
    strategy: str
    first_position: int
    last_position: int
    message_count: int
    kept_count: int
    tokens_before: int
    tokens_after: int = Field(description="Of the draft; a model's summary may differ.")
    summary: str = Field(description="A draft: the sentences that carry facts. No model wrote it.")


class InspectedMessage(Shape):
    role: str
    content: Any
    source: Any
    tokens: int


class Inspection(Shape):
    messages: list[InspectedMessage]
    total_tokens: int
    budget_tokens: int
    pressure: float
    compaction: Any
    recalled: list[Any]


class EntrySource(Shape):
    conversation_id: str
    first_message_id: str
    last_message_id: str
    created_at: Moment


class MemoryEntry(Shape):
    id: str
    day: str
    text: str
    author: Literal["extraction", "user"] = Field(description="Who wrote the text as it is now.")
    shared_memory_of: str | None = Field(description="The agent whose users know it, too.")
    state: Literal["kept", "proposed"]
    revision: int
    conversation_id: str | None
    first_message_id: str | None
    last_message_id: str | None
    sources: list[EntrySource] = Field(description="Later spans that said the same.")
    created_at: Moment
    updated_at: Moment


class EntryRevision(Shape):
    revision: int
    text: str
    author: Literal["extraction", "user"]
    written_at: Moment
    is_current: bool


class MemoryDay(Shape):
    day: str
    entry_count: int


class MemoryStats(Shape):
    day: str
    entry_count: int
    entry_tokens: int = Field(description="What the day's entries would take in a context; an estimate.")
    input_tokens: int = Field(description="What models read for you on that day.")
    output_tokens: int


class MemoryDayText(Shape):
    day: str
    markdown: str
    version: str = Field(description="Also the ETag: send it as `If-Match` with the changed Markdown.")
    entries: list[MemoryEntry]


class MemorySettings(Shape):
    paused: bool = Field(description="Nothing is learned, and conversations know nothing of each other.")
    review: bool = Field(description="What is extracted waits for approval.")
    profile: bool = Field(description="Conversations are told of the profile.")


class Consolidation(Shape):
    """The last pass over what the profile did not know."""

    status: Literal["pending", "running", "done", "failed", "skipped"]
    reason: str | None = Field(description="Why it failed or was skipped.")
    entry_count: int
    version: int | None = Field(description="What it made; null = there was nothing new.")
    created_at: Moment
    finished_at: Moment | None


class Profile(Shape):
    markdown: str
    version: int = Field(description="Also the ETag; 0 while nothing was written yet.")
    author: Literal["user", "consolidation", "forgetting"] | None
    updated_at: Moment | None
    tokens: int
    budget_tokens: int = Field(description="What is longer is cut at a line when it is sent.")
    is_used: bool = Field(description="Whether conversations are told of it.")
    consolidation: Consolidation | None


class ProfileVersion(Shape):
    version: int
    author: Literal["user", "consolidation", "forgetting"]
    created_at: Moment
    tokens: int


class LineChange(Shape):
    kind: Literal["same", "added", "removed"]
    text: str


class ProfileVersionText(ProfileVersion):
    markdown: str
    against: int = Field(description="The version `changes` starts from; 0 is the empty one.")
    changes: list[LineChange]


class Imported(Shape):
    id: str
    message_count: int


class Token(Shape):
    id: str
    name: str
    prefix: str
    scopes: list[str]
    created_at: Moment
    last_used_at: Moment | None


class CreatedToken(Token):
    token: str = Field(description="The secret. It is shown this once.")


ALWAYS_POSSIBLE = (400, 401, 403, 413, 422, 429, 500, 503)


def answers(*statuses: int, **bodies: Any) -> dict[int, Any]:
    """For `response=`: `answers(404, ok=Run)`; what is always possible needs no mention."""
    success = {{"ok": 200, "created": 201, "accepted": 202}[name]: body for name, body in bodies.items()}
    return {**(success or {204: None}), **dict.fromkeys(sorted({*ALWAYS_POSSIBLE, *statuses}), Error)}
