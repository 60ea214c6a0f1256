"""What goes into a model call and what comes out of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from memory.types import Message

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "bound"]
"""`bound`: we closed the stream, because the model wrote more than one answer may have."""
Purpose = Literal["chat", "compaction", "title", "memory", "plan"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """`parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """`messages` begins with the system prompt; `max_output_tokens` bounds the answer."""

    messages: tuple[Message, ...]
    max_output_tokens: int
    tools: tuple[ToolSpec, ...] = ()
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class WireStyle:
    """`merges_roles`: neighbours of one role become one message, for chat templates that insist on alternation.
    `has_system` False: the system prompt leads the first user message, for templates without that role.
    `has_late_system` False: only the beginning may be a system message; a later one is written as the user's.
    `has_reasoning` False: what a model thought before a call is not sent back. `needs_reasoning`: every call needs it,
    also those of earlier turns, whose thoughts are not kept: a blank stands for them."""

    merges_roles: bool = False
    has_system: bool = True
    has_late_system: bool = True
    has_reasoning: bool = True
    needs_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class RequestSent:
    """The first item of a stream whose model is sent something: the request, and the body it became. Once more for each
    time a server had it written anew."""

    request: ModelRequest
    body: Mapping[str, Any]
    style: WireStyle = WireStyle()


@dataclass(frozen=True, slots=True)
class ToolsPrompted:
    """The server refused tools: they are described in the prompt instead. `text` tells the user, in one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """`is_wanted_back`: servers that send it under this name insist on it in the steps that follow a tool call."""

    text: str
    is_wanted_back: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """Fragments of call number `index`; `call_id` and `name` come once, `arguments` in pieces."""

    index: int
    call_id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Counts of one call. `exact` is False where the provider told none and they are our estimate."""

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
    """Where one model answers. The documented time-outs: connecting, the first token, standing still in between."""

    model_id: str
    base_url: str = ""
    """Empty: api.openai.com."""
    api_key: str = field(default="", repr=False)
    connect_timeout_s: float = 10.0
    first_token_timeout_s: float = 120.0
    stall_timeout_s: float = 60.0
    max_answer_bytes: int = 4 * 2**20
    """Of one answer: text, reasoning and the arguments of tool calls."""


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model as its server lists it; None where the server does not say."""

    model_id: str
    context_size: int | None = None
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What the admin's Test action found. `sentence` says it in words; `error_category` is None when it answered."""

    sentence: str
    models: tuple[ListedModel, ...] = ()
    first_token_s: float | None = None
    answer: str = ""
    has_usage: bool = False
    context_size: int | None = None
    max_output_tokens: int | None = None
    error_category: str | None = None
    error_detail: str = ""


ModelItem = RequestSent | ToolsPrompted | TextDelta | ReasoningDelta | ToolCallDelta | Finished


class ChatModel(Protocol):
    """A model that can be asked. Raises `agents.errors.ModelError`, never anything of a client library."""

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        """The answer as it comes, ended by exactly one `Finished`. `aclose` ends the call."""
        ...
