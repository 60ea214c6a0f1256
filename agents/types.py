"""Define the input and the output of a model call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from memory.types import Message

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "bound", "lost", "unknown_reason"]
"""`bound`: we closed the stream, because the model wrote more than one answer may hold. `lost`: a part of the answer
could not be read. `unknown_reason`: the provider sent a reason that we do not know; the answer may be unfinished."""
UNFINISHED_REASONS: frozenset[FinishReason] = frozenset({"bound", "lost"})
"""The tool calls of such an answer are incomplete and must not run."""
LIMIT_REASONS: frozenset[FinishReason] = frozenset({"length", "content_filter"})
"""A limit ended such an answer, maybe within its last tool call; everything before that is complete."""
Purpose = Literal["chat", "compaction", "title", "memory", "plan"]


SERVER_END = "__"
"""Separates the name of an MCP server from the rest of a tool's name."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as described to models; `parameters` is a JSON schema of an object.

    `strict` is OpenAI's flag that arguments must match the schema exactly; None omits it.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool | None = None

    @property
    def server(self) -> str:
        """Return the name of its MCP server; empty for a built-in tool."""
        server, separator, _ = self.name.partition(SERVER_END)
        return server if separator else ""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call. `messages` begins with the system prompt; `max_output_tokens` limits the answer.

    `options` are further fields of the protocol, such as `top_p`, sent unchanged.
    """

    messages: tuple[Message, ...]
    max_output_tokens: int
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WireStyle:
    """What a server or its chat template requires.

    `merges_roles`: consecutive messages of one role are merged, for templates that want roles to alternate.
    `has_system` False: the system prompt goes into the first user message, for templates without that role.
    `has_late_system` False: only the first message may be a system message; a later one is sent as a user message.
    `has_reasoning` False: reasoning before a call is not sent back.
    `needs_reasoning`: every call needs it. Reasoning of earlier turns is not kept, so a blank is sent instead.
    """

    merges_roles: bool = False
    has_system: bool = True
    has_late_system: bool = True
    has_reasoning: bool = True
    needs_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class RequestSent:
    """The request, its body and the bytes sent: the first item of a stream, and again for each retry in another form
    after a server refused one."""

    request: ModelRequest
    body: Mapping[str, Any]
    content: bytes
    style: WireStyle = WireStyle()


@dataclass(frozen=True, slots=True)
class ToolsPrompted:
    """The server refused tools, so the prompt describes them. `text` is one sentence for the user."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning. `must_be_returned`: the server requires it in the steps that follow a tool call."""

    text: str
    must_be_returned: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A fragment of call number `index`; `call_id` and `name` are sent once, `arguments` in pieces."""

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts of one call. `exact` is False if the provider sent no usable counts, so that these are estimates."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Finished:
    """The last item of every stream that did not raise."""

    reason: FinishReason
    usage: TokenUsage = field(default_factory=TokenUsage)


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """How to reach one model, with timeouts for connecting, for the first token and for each pause after it."""

    model_id: str
    base_url: str = ""
    """Empty: api.openai.com."""
    api_key: str = field(default="", repr=False)
    connect_timeout_s: float = 10.0
    first_token_timeout_s: float = 120.0
    stall_timeout_s: float = 60.0
    max_answer_bytes: int = 4 * 2**20
    """For one answer: text, reasoning and the arguments of tool calls."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as its server lists it; None if the server does not report a value."""

    model_id: str
    context_size: int | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of testing a model; `error_category` is None if the model answered.

    `sentence` is for operators and may contain the provider's words, redacted. `listed` is the model in its server's
    list.
    """

    sentence: str
    listed: ListedModel | None = None
    error_category: str | None = None


ModelItem = RequestSent | ToolsPrompted | TextDelta | ReasoningDelta | ToolCallDelta | Finished


class ChatModel(Protocol):
    """A model that can be called. Raises only `agents.errors.ModelError`, no errors of a client library."""

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        """Yield the answer as it arrives, ended by exactly one `Finished`. `aclose` cancels the call."""
        ...
