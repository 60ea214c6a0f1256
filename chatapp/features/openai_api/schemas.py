"""Request bodies of OpenAI's chat completions and embeddings. Unknown fields are rejected, as everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from agents.types import ToolSpec
from chatapp.conversations.schemas.messages import MessageText
from chatapp.operations.http.schemas import Body
from memory.bounds import MAX_CHARS, MAX_ID_CHARS, MAX_PARTS, MAX_TOOLS, Id, Temperature, Tokens
from memory.types import Role

MAX_MESSAGES = 20_000
MAX_SCHEMA_FIELDS = 1_000
# This bound, the next one, and the lengths of metadata keys and values are OpenAI's own.
MAX_METADATA = 16
MAX_EMBEDDED = 2_048

Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=MAX_METADATA),
]
JsonObject = Annotated[dict[str, Any], Field(max_length=MAX_SCHEMA_FIELDS)]
Penalty = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
PageSize = Annotated[int, Field(ge=1, le=100)]
Order = Literal["asc", "desc"]
AnswerTokens = Annotated[Tokens, Field(ge=1)]
Label = Annotated[str, Field(max_length=MAX_ID_CHARS)]


class ConversationRef(Body):
    id: Id


class TextContent(Body):
    type: Literal["text"]
    text: MessageText


class RefusalContent(Body):
    """A model's refusal that is sent back. It is read like any other text of an answer."""

    type: Literal["refusal"]
    refusal: MessageText

    @property
    def text(self) -> str:
        return self.refusal


class ImageAddress(Body):
    url: Annotated[str, Field(max_length=MAX_CHARS)]
    detail: Literal["auto", "low", "high", "original"] | None = None


class ImageContent(Body):
    type: Literal["image_url"]
    image_url: ImageAddress


ContentPart = Annotated[TextContent | RefusalContent | ImageContent, Field(discriminator="type")]
Content = MessageText | Annotated[list[ContentPart], Field(max_length=MAX_PARTS)]


class CalledFunction(Body):
    name: Label
    arguments: Annotated[str, Field(max_length=MAX_CHARS)]


class CalledTool(Body):
    id: Label
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None


class ChatMessage(Body):
    """A message that OpenAI's clients send, or an answer that they send back."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    name: Label | None = None
    tool_calls: Annotated[list[CalledTool], Field(max_length=MAX_TOOLS)] | None = None
    tool_call_id: Label | None = None
    refusal: MessageText | None = None
    reasoning_content: MessageText | None = None
    annotations: Annotated[list[Any], Field(max_length=MAX_PARTS)] | None = None
    # OpenAI's client sends these fields of answers back as null.
    audio: None = None
    function_call: None = None

    @property
    def stored_role(self) -> Role:
        return "system" if self.role == "developer" else self.role

    @property
    def texts(self) -> list[str]:
        """Return the texts of the content, in order."""
        if isinstance(self.content, str):
            return [self.content]
        return [part.text for part in self.content or () if not isinstance(part, ImageContent)]

    @property
    def image_addresses(self) -> list[str]:
        """Return the addresses of the images in the content, in order."""
        parts = () if isinstance(self.content, str) else self.content or ()
        return [part.image_url.url for part in parts if isinstance(part, ImageContent)]


class FunctionIn(Body):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: Annotated[str, Field(max_length=MAX_CHARS)] | None = None
    parameters: JsonObject | None = None
    strict: bool | None = None

    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.description or "", self.parameters or {}, self.strict)


class ToolIn(Body):
    type: Literal["function"]
    function: FunctionIn


def _only_functions(tool: Any) -> Any:
    """Reject a tool that OpenAI itself runs because of its type, not because of missing fields of a function."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and kind != "function":
        sentence = "A tool of the type '{kind}' is not supported here; the type should be 'function'"
        raise PydanticCustomError("unsupported_tool", sentence, {"kind": kind[:MAX_ID_CHARS]})
    return tool


OnlyFunctions = BeforeValidator(_only_functions)


def has_format(wanted: JsonObject | None) -> bool:
    """Return whether the answer must have a format other than text, e.g. JSON of a schema."""
    return wanted is not None and wanted.get("type") != "text"


class StreamOptions(Body):
    include_usage: bool = False
    include_obfuscation: bool | None = None


PASSED_ON = (
    "top_p",
    "stop",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "seed",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "verbosity",
)
"""Fields that are passed unchanged to the model's endpoint."""


class AnswerRequest(Body):
    """What both requests for an answer have in common."""

    model: Id | None = None
    conversation: Id | ConversationRef | None = None
    stream: bool | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    tool_choice: Label | JsonObject | None = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    user: Label | None = None
    safety_identifier: Label | None = None
    prompt_cache_key: Label | None = None
    prompt_cache_retention: Label | None = None
    service_tier: Label | None = None

    @property
    def conversation_name(self) -> str | None:
        return self.conversation.id if isinstance(self.conversation, ConversationRef) else self.conversation


class ChatCompletion(AnswerRequest):
    """A request of `POST /v1/chat/completions`."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    stream_options: StreamOptions | None = None
    max_tokens: AnswerTokens | None = None
    max_completion_tokens: AnswerTokens | None = None
    # Accept only values of `n`, `modalities` and `logprobs` that change nothing; reject others, don't ignore them.
    n: Literal[1] | None = None
    stop: Label | Annotated[list[Label], Field(max_length=4)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: Annotated[dict[Label, float], Field(max_length=1_024)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    tools: Annotated[list[Annotated[ToolIn, OnlyFunctions]], Field(max_length=MAX_TOOLS)] | None = None
    response_format: JsonObject | None = None
    reasoning_effort: Label | None = None
    verbosity: Label | None = None
    modalities: list[Literal["text"]] | None = None
    logprobs: Literal[False] | None = None

    @property
    def limit_tokens(self) -> int:
        """Return the requested limit of the answer; 0 means the model's own limit."""
        return self.max_completion_tokens or self.max_tokens or 0

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.function.spec() for tool in self.tools or ())

    def options(self) -> Mapping[str, Any]:
        """Return the fields that are passed on to the model's endpoint."""
        return {name: getattr(self, name) for name in PASSED_ON if getattr(self, name) is not None}


class Embeddings(Body):
    """A request of `POST /v1/embeddings`. Lists of token ids are rejected, because the tokenizer is unknown here."""

    input: MessageText | Annotated[list[MessageText], Field(min_length=1, max_length=MAX_EMBEDDED)]
    model: Id
    encoding_format: Literal["float", "base64"] = "float"
    user: Label | None = None

    @property
    def texts(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input
