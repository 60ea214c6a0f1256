"""Request bodies of OpenAI's responses and conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from chatapp.conversations.schemas.messages import MessageText
from chatapp.features.openai_api.schemas import (
    MAX_MESSAGES,
    AnswerRequest,
    AnswerTokens,
    CalledFunction,
    CalledTool,
    ChatMessage,
    FunctionIn,
    ImageAddress,
    ImageContent,
    JsonObject,
    Label,
    Metadata,
    OnlyFunctions,
    RefusalContent,
    TextContent,
    has_format,
)
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.schemas import Body
from memory.bounds import MAX_CHARS, MAX_PARTS, MAX_TOOLS, Id

MAX_NEW_ITEMS = 20


class InputText(Body):
    """Text of the user, or of an answer that is sent back."""

    type: Literal["input_text", "output_text", "text", "summary_text", "reasoning_text"]
    text: MessageText
    annotations: Annotated[list[Any], Field(max_length=MAX_PARTS)] | None = None
    logprobs: Annotated[list[Any], Field(max_length=MAX_PARTS)] | None = None


class InputImage(Body):
    type: Literal["input_image"]
    image_url: Annotated[str, Field(max_length=MAX_CHARS)]
    detail: Literal["auto", "low", "high", "original"] | None = None
    # Accept only null: clients send the field, but OpenAI's files do not exist here.
    file_id: None = None


InputPart = Annotated[InputText | InputImage, Field(discriminator="type")]
MessagePart = Annotated[InputText | InputImage | RefusalContent, Field(discriminator="type")]


class MessageItem(Body):
    type: Literal["message"] = "message"
    role: Literal["user", "assistant", "system", "developer"]
    content: MessageText | Annotated[list[MessagePart], Field(max_length=MAX_PARTS)]
    id: Label | None = None
    status: Label | None = None
    phase: Label | None = None

    def chat_message(self) -> ChatMessage:
        """Return the item as a message of chat completions."""
        if isinstance(self.content, str):
            return ChatMessage(role=self.role, content=self.content)
        parts = [_chat_part(part) for part in self.content]
        return ChatMessage(role=self.role, content=parts)


def _chat_part(part: InputText | InputImage | RefusalContent) -> TextContent | ImageContent:
    if isinstance(part, InputImage):
        return ImageContent(type="image_url", image_url=ImageAddress(url=part.image_url))
    return TextContent(type="text", text=part.text)


class FunctionCall(Body):
    type: Literal["function_call"]
    call_id: Label
    name: Label
    arguments: Annotated[str, Field(max_length=MAX_CHARS)]
    id: Label | None = None
    status: Label | None = None
    namespace: Label | None = None
    caller: JsonObject | None = None

    def chat_message(self) -> ChatMessage:
        function = CalledFunction(name=self.name, arguments=self.arguments)
        return ChatMessage(role="assistant", tool_calls=[CalledTool(id=self.call_id, function=function)])


class FunctionOutput(Body):
    type: Literal["function_call_output"]
    call_id: Label
    output: MessageText | Annotated[list[InputPart], Field(max_length=MAX_PARTS)]
    id: Label | None = None
    status: Label | None = None
    caller: JsonObject | None = None

    def chat_message(self) -> ChatMessage:
        if isinstance(self.output, str):
            return ChatMessage(role="tool", tool_call_id=self.call_id, content=self.output)
        texts = [part.text for part in self.output if isinstance(part, InputText)]
        return ChatMessage(role="tool", tool_call_id=self.call_id, content="\n".join(texts))


class ItemReference(Body):
    """A reference to a stored message, in place of its text."""

    type: Literal["item_reference"]
    id: Label


class ReasoningItem(Body):
    """Reasoning that is sent back. Models that require it get it with the calls that follow it."""

    type: Literal["reasoning"]
    id: Label | None = None
    summary: Annotated[list[Any], Field(max_length=MAX_PARTS)] = []
    content: Annotated[list[Any], Field(max_length=MAX_PARTS)] | None = None
    encrypted_content: Annotated[str, Field(max_length=MAX_CHARS)] | None = None
    status: Label | None = None

    @property
    def text(self) -> str:
        """Return the reasoning, or its summary if the content is missing; empty if it is encrypted."""
        texts = [part.get("text") for part in self.content or self.summary if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))


ITEM_TYPES = ("message", "function_call", "function_call_output", "reasoning", "item_reference")


def _item_type(item: Any) -> str:
    # In OpenAI's protocol an item without a type is a message.
    kind = item.get("type", "message") if isinstance(item, dict) else getattr(item, "type", "message")
    return kind if isinstance(kind, str) else "message"


InputItem = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionOutput, Tag("function_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[ItemReference, Tag("item_reference")],
    Discriminator(
        _item_type,
        custom_error_type="unknown_item",
        custom_error_message=f"The type should be one of {', '.join(ITEM_TYPES)}",
    ),
]


def is_answer(item: Any) -> bool:
    """Return whether an item is a model's answer."""
    return isinstance(item, MessageItem) and item.role == "assistant"


class ToolOfResponse(FunctionIn):
    type: Literal["function"]
    defer_loading: bool | None = None


class TextFormat(Body):
    format: JsonObject | None = None
    verbosity: Label | None = None


class Reasoning(Body):
    effort: Label | None = None
    summary: Label | None = None
    generate_summary: Label | None = None


class NewResponse(AnswerRequest):
    """A request of `POST /v1/responses`."""

    input: MessageText | Annotated[list[InputItem], Field(min_length=1, max_length=MAX_MESSAGES)]
    instructions: MessageText | None = None
    previous_response_id: Id | None = None
    stream_options: JsonObject | None = None
    max_output_tokens: AnswerTokens | None = None
    tools: Annotated[list[Annotated[ToolOfResponse, OnlyFunctions]], Field(max_length=MAX_TOOLS)] | None = (
        None
    )
    text: TextFormat | None = None
    reasoning: Reasoning | None = None
    truncation: Literal["auto", "disabled"] | None = None
    include: Annotated[list[Label], Field(max_length=MAX_PARTS)] | None = None
    background: Literal[False] | None = None

    @property
    def names_place(self) -> bool:
        """Return whether the request names the conversation it belongs to, directly or by a response."""
        return bool(self.conversation or self.previous_response_id)

    @property
    def items(self) -> Sequence[InputItem]:
        return () if isinstance(self.input, str) else self.input

    @property
    def has_history(self) -> bool:
        """Return whether the input contains earlier turns, so the client keeps the history itself."""
        return any(isinstance(item, FunctionCall | FunctionOutput) or is_answer(item) for item in self.items)

    @property
    def has_format(self) -> bool:
        return has_format(self.text.format if self.text else None)

    @property
    def is_stored(self) -> bool:
        """Return `store`; by default True if it names a place, or has no tools, format or history of its own."""
        brings_own = bool(self.tools) or self.has_format or self.has_history
        return self.names_place or not brings_own if self.store is None else self.store

    def chat_messages(self) -> list[ChatMessage]:
        """Return the input as chat messages, without references. Merge reasoning and adjacent calls into one message,
        as models write them."""
        if isinstance(self.input, str):
            return [ChatMessage(role="user", content=self.input)]
        messages: list[ChatMessage] = []
        reasoning = None
        for item in self.input:
            if isinstance(item, ItemReference):
                continue
            if isinstance(item, ReasoningItem):
                reasoning = item.text
                continue
            message = item.chat_message()
            if reasoning and message.role == "assistant":
                message = message.model_copy(update={"reasoning_content": reasoning})
            reasoning = None
            before = messages[-1] if messages else None
            if message.tool_calls and before is not None and before.role == "assistant":
                messages[-1] = before.model_copy(
                    update={
                        "tool_calls": [*(before.tool_calls or ()), *message.tool_calls],
                        "reasoning_content": before.reasoning_content or message.reasoning_content,
                    }
                )
            else:
                messages.append(message)
        return messages

    def options(self) -> Mapping[str, Any]:
        """Return the options for the model's endpoint, under their names in chat completions."""
        found = {
            "top_p": self.top_p,
            "parallel_tool_calls": self.parallel_tool_calls,
            "tool_choice": _chat_choice(self.tool_choice),
            "response_format": _chat_format(self.text.format if self.text else None),
            "verbosity": self.text.verbosity if self.text else None,
            "reasoning_effort": self.reasoning.effort if self.reasoning else None,
        }
        return {name: value for name, value in found.items() if value is not None}


def _chat_choice(choice: str | dict[str, Any] | None) -> Any:
    if isinstance(choice, dict) and choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return choice


def _chat_format(wanted: dict[str, Any] | None) -> dict[str, Any] | None:
    if wanted is None or not has_format(wanted):
        return None
    if wanted.get("type") != "json_schema":
        return wanted
    schema = {name: wanted[name] for name in ("name", "description", "schema", "strict") if name in wanted}
    return {"type": "json_schema", "json_schema": schema}


class NewConversationIn(Body):
    items: Annotated[list[InputItem], Field(max_length=MAX_NEW_ITEMS)] | None = None
    metadata: Metadata | None = None


class ConversationUpdate(Body):
    metadata: Metadata | None


class NewItems(Body):
    items: Annotated[list[InputItem], Field(min_length=1, max_length=MAX_NEW_ITEMS)]


def only_messages(items: list[Any]) -> list[MessageItem]:
    """Return the items as messages. Raise InvalidInput if one is not a message."""
    for number, item in enumerate(items):
        if not isinstance(item, MessageItem):
            sentence = "Only messages can be added to a conversation."
            raise InvalidInput.in_field(f"items.{number}.type", "must be message", sentence)
    return items
