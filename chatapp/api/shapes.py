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
    timeout_s: float | None
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


def _aside(description: str) -> Any:
    """What a message has only where there is any."""
    return Field(None, description=description, exclude_if=lambda value: value is None)


class Message(Shape):
    id: str
    conversation_id: str
    role: Literal["user", "assistant", "tool", "system"]
    content: str | list[dict[str, Any]] = Field(description="A string where it is plain text, else parts.")
    status: Literal["streaming", "complete", "cut", "stopped", "failed", "interrupted"] = Field(
        description="`cut`: it ended at a limit, which `error.category` names: length, content_filter or bound."
    )
    position: int
    parent: str | None = Field(description="Of a tool call, its result and an injected message: the answer.")
    kind: Literal["message", "injected"] = Field(description="Injected: sent while an answer was written.")
    siblings: list[str] | None = Field(
        None,
        description="Ids of all messages in its place, by edits or new answers, itself too; oldest first.",
    )
    pinned: bool
    forgotten: bool = Field(description="Its words, or some of them.")
    model: str | None
    usage: RunUsage | None
    created_at: Moment
    error: dict[str, str] | None = _aside(
        "Of an answer that is not whole: `{category, message}`, as its run has them."
    )
    run: dict[str, Any] | None = _aside(
        "Of an answer: `{id, status, error, mode, plan}`, as `/runs/{id}` has them."
    )
    tools: list[dict[str, Any]] | None = _aside(
        "Of an answer: the calls of its run, hooks' too, each as in the run's trace."
    )
    recalled: list[dict[str, Any]] | None = _aside(
        "Of an answer: what came back for it, as in the event `recall`."
    )
    notices: list[dict[str, str]] | None = _aside(
        "Of an answer: what was told on its way, `{kind, text}`; `hook`: what a hook did."
    )
    remembered: list[dict[str, str]] | None = _aside("What was learned up to it: `{entry_id, day, preview}`.")


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
    injected: bool = Field(description="Into the run that is going on; false: it has a run of its own.")


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
