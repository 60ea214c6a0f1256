"""`/v1/chat/completions`: one model call that stores nothing or, with a conversation, a turn of it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import JsonResponse
from django.http.response import HttpResponseBase
from ninja import Router
from ninja.params.functions import Header

from agents.chat_models.usage import count_request
from agents.errors import ModelError
from agents.types import (
    Finished,
    FinishReason,
    ModelItem,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)
from chatapp.accounts.callers import ApiRequest, allow, client_address
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.context.policies import rules_for
from chatapp.features.openai_api.calling import ModelCall
from chatapp.features.openai_api.errors import Unsupported
from chatapp.features.openai_api.reading import inline_images, model_messages
from chatapp.features.openai_api.schemas import ChatCompletion, has_format
from chatapp.features.openai_api.streams import (
    DONE,
    Items,
    after_first_item,
    data_line,
    error_of,
    event_stream,
)
from chatapp.features.openai_api.turns import (
    NEW,
    NO_FORMATS_OF_CLIENTS,
    NO_TOOLS_OF_CLIENTS,
    NewTurn,
    TurnFollower,
    begin_turn,
    conversation_name,
    named_conversation,
    new_turn,
)
from chatapp.operations.errors import InvalidInput, ServiceError
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import accessible_model, default_model, model_of
from chatapp.runs.actions.sending import Receipt

router = Router()

CONVERSATION_HEADER = "X-Conversation-Id"
REASONS: Mapping[FinishReason, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    # Clients know no other reason for an incomplete answer.
    "bound": "length",
    "lost": "length",
    "unknown_reason": "length",
}


@dataclass(slots=True)
class Source:
    """Where an answer comes from: its items, the model that writes them, and the conversation that stores it."""

    items: Items
    model_name: str
    conversation_id: str | None = None


@router.post("/chat/completions", auth=allow("chat"))
async def create_completion(
    request: ApiRequest,
    asked: ChatCompletion,
    conversation_id: str | None = Header(None, alias=CONVERSATION_HEADER, max_length=200),
    idempotency_key: str | None = Header(None, alias="Idempotency-Key", min_length=1, max_length=200),
) -> HttpResponseBase:
    """Answer the messages, and store nothing but the usage.

    With `conversation` or the header `X-Conversation-Id` (an id, or `new`), only the user's newest messages are read:
    the server stores the conversation, compacts it, and recalls what is relevant to the question.
    """
    user = request.auth.user
    await check_message_rate(user.pk, client_address(request))
    named = asked.conversation_name
    if named and conversation_id and named != conversation_id:
        sentence = f"Name the conversation once: in `conversation` or in {CONVERSATION_HEADER}."
        raise InvalidInput.in_field("conversation", sentence, sentence)
    name = named or conversation_id
    if name:
        source = await _turn_source(user, asked, name, idempotency_key)
    else:
        source = await _call_source(user, asked)
    await sync_to_async(close_old_connections)()  # the answer may take minutes
    # Wait before choosing status and headers, so that an early error gets its own.
    items = await after_first_item(source.items)
    writer = CompletionWriter(source.model_name)
    if asked.stream:
        has_usage = asked.stream_options is not None and asked.stream_options.include_usage
        response = event_stream(request.auth, _chunks(items, writer, has_usage=has_usage))
    else:
        async with aclosing(items):
            async for item in items:
                writer.take(item)
        response = JsonResponse(writer.completion())
    if source.conversation_id:
        response[CONVERSATION_HEADER] = conversation_name(source.conversation_id)
    return response


async def _call_source(user: User, asked: ChatCompletion) -> Source:
    addresses = [address for message in asked.messages for address in message.image_addresses]
    images = await inline_images(addresses)
    request = ModelRequest(
        # Convert in a thread, because there may be thousands of messages.
        messages=await asyncio.to_thread(model_messages, asked.messages, images),
        max_output_tokens=asked.limit_tokens,
        tools=asked.specs,
        temperature=asked.temperature,
        options=asked.options(),
    )
    config, request = await sync_to_async(model_request)(user, asked.model, request)
    return Source(ModelCall(user, config, request).items(), config.name)


def model_request(user: User, model: str | None, request: ModelRequest) -> tuple[ModelConfig, ModelRequest]:
    """Return the model, and the request with its answer limit capped at the model's own. Raise NotFound."""
    config = accessible_model(user.pk, model) if model else default_model(user.pk)
    most = rules_for(config).budget.output_for(count_request(request))
    limit = min(request.max_output_tokens or most, most)
    return config, replace(request, max_output_tokens=limit)


async def _turn_source(user: User, asked: ChatCompletion, name: str, key: str | None) -> Source:
    if asked.tools:
        raise Unsupported("tools", NO_TOOLS_OF_CLIENTS)
    if has_format(asked.response_format):
        raise Unsupported("response_format", NO_FORMATS_OF_CLIENTS)
    turn = await new_turn(asked.messages, key)
    receipt, model_name = await sync_to_async(_begin)(user, name, asked.model, turn)
    return Source(TurnFollower(user, receipt).items(), model_name, receipt.conversation_id)


def _begin(user: User, name: str, model: str | None, turn: NewTurn) -> tuple[Receipt, str]:
    conversation = None if name == NEW else named_conversation(user, name)
    config = accessible_model(user.pk, model) if model else None
    answering = config or (model_of(conversation) if conversation else default_model(user.pk))
    return begin_turn(user, conversation, turn, config), answering.name


@dataclass(slots=True)
class _Call:
    call_id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def shape(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": "".join(self.arguments)}
        return {"id": self.call_id, "type": "function", "function": function}


class CompletionWriter:
    """Writes an answer as a chat completion, whole or in chunks."""

    def __init__(self, model_name: str) -> None:
        self.head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model_name,
        }
        self.usage = TokenUsage()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._reason = "stop"

    def take(self, item: ModelItem) -> dict[str, Any] | None:
        """Record an item and return its delta for a chunk; None if the item is not shown."""
        match item:
            case TextDelta(text=text):
                self._text.append(text)
                return {"content": text}
            case ReasoningDelta(text=text):
                self._reasoning.append(text)
                return {"reasoning_content": text}
            case ToolCallDelta():
                return {"tool_calls": [self._take_call(item)]}
            case Finished():
                self.usage = item.usage
                # Clients check for this reason before they run calls, whatever the server reported.
                self._reason = "tool_calls" if self._calls and item.reason == "stop" else REASONS[item.reason]
        return None

    def _take_call(self, item: ToolCallDelta) -> dict[str, Any]:
        function: dict[str, Any] = {"arguments": item.arguments}
        call = self._calls.get(item.index)
        if call is None:
            # The client's result must reference an id, even if the server gave none.
            call = self._calls[item.index] = _Call(item.call_id or f"call_{uuid.uuid4().hex}", item.name)
            shown = {"id": call.call_id, "type": "function", "function": {"name": item.name} | function}
        else:
            # Only the first chunk of a call contains its id and name.
            shown = {"function": function}
        call.arguments.append(item.arguments)
        return {"index": item.index} | shown

    def completion(self) -> dict[str, Any]:
        """Return the whole answer."""
        text = "".join(self._text)
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
        if self._reasoning:
            message["reasoning_content"] = "".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = [call.shape() for _, call in sorted(self._calls.items())]
        elif not text:
            # Only messages that call tools may have null content.
            message["content"] = ""
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason}
        return self.head | {
            "object": "chat.completion",
            "choices": [choice],
            "usage": usage_shape(self.usage),
        }

    def chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return self.head | {"object": "chat.completion.chunk", "choices": [choice]}

    def last_chunk(self) -> dict[str, Any]:
        return self.chunk({}, self._reason)

    def usage_chunk(self) -> dict[str, Any]:
        return self.head | {
            "object": "chat.completion.chunk",
            # OpenAI's usage chunk has no choices.
            "choices": [],
            "usage": usage_shape(self.usage),
        }


def usage_shape(usage: TokenUsage) -> dict[str, Any]:
    """Return the counts in the shape of chat completions."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


async def _chunks(items: Items, writer: CompletionWriter, *, has_usage: bool) -> AsyncGenerator[bytes, None]:
    """Yield the events of a streamed completion. An error in the middle is sent as an event and ends it."""
    # OpenAI's first chunk names the role and has no text.
    yield data_line(writer.chunk({"role": "assistant", "content": ""}))
    try:
        async with aclosing(items):
            async for item in items:
                delta = writer.take(item)
                if delta is not None:
                    yield data_line(writer.chunk(delta))
    except (ModelError, ServiceError) as error:
        yield data_line(error_of(error))
        # Clients read until this marker, even after an error.
        yield DONE
        return
    yield data_line(writer.last_chunk())
    if has_usage:
        yield data_line(writer.usage_chunk())
    yield DONE
