"""What goes into a model call and what comes out of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from memory.types import Message

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]
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
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


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


ModelItem = TextDelta | ReasoningDelta | ToolCallDelta | Finished


class ChatModel(Protocol):
    """A model that can be asked. Raises `agents.errors.ModelError`, never anything of a client library."""

    @property
    def name(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        """The answer as it comes, ended by exactly one `Finished`. `aclose` ends the call."""
        ...
