"""`/v1/responses`: stored as runs of conversations or, with `store: false`, one model call that stores nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import JsonResponse
from django.http.response import HttpResponseBase
from ninja.params.functions import Header

from agents.types import Finished, ModelRequest
from chatapp.accounts.callers import ApiRequest, allow, client_address
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Message
from chatapp.conversations.selectors.messages import SPOKEN
from chatapp.features.openai_api.actions import delete_response, store_response
from chatapp.features.openai_api.calling import ModelCall
from chatapp.features.openai_api.completions import model_request
from chatapp.features.openai_api.errors import Unsupported
from chatapp.features.openai_api.history import continued_answer, with_items
from chatapp.features.openai_api.models import StoredResponse
from chatapp.features.openai_api.reading import inline_images, model_messages
from chatapp.features.openai_api.response_schemas import NewResponse
from chatapp.features.openai_api.response_shapes import (
    ResponseHead,
    list_object,
    message_item,
    message_output,
    named,
    new_name,
    response_shape,
    seconds,
)
from chatapp.features.openai_api.response_stream import ResponseWriter, response_events
from chatapp.features.openai_api.schemas import ChatMessage, Label, Order, PageSize
from chatapp.features.openai_api.selectors import accessible_response
from chatapp.features.openai_api.streams import Items, after_first_item, event_stream
from chatapp.features.openai_api.turns import (
    NO_FORMATS_OF_CLIENTS,
    NO_TOOLS_OF_CLIENTS,
    NewTurn,
    TurnFollower,
    begin_turn,
    named_conversation,
    new_turn,
    usage_of,
)
from chatapp.forgetting.services import delete_message, forget_whole_conversation
from chatapp.operations import clock
from chatapp.operations.errors import NotFound
from chatapp.operations.http.routers import Router
from chatapp.providers.selectors import accessible_model, default_model, model_of
from chatapp.runs.actions.sending import Receipt
from chatapp.runs.models import Run

router = Router()

NO_HISTORY_OF_CLIENTS = (
    "An input with answers or calls that are not stored here is answered without being stored; leave `store` out, or "
    "add them to a conversation."
)
REPEATED = ("max_output_tokens", "parallel_tool_calls", "temperature", "top_p", "user")


@dataclass(slots=True)
class Source:
    """Where a response comes from, and what is known of it before it is written."""

    items: Items
    head: ResponseHead
    answer_name: str = ""


@router.post("/responses", auth=allow("chat"))
async def create_response(
    request: ApiRequest,
    asked: NewResponse,
    idempotency_key: str | None = Header(None, alias="Idempotency-Key", min_length=1, max_length=200),
) -> HttpResponseBase:
    """Answer the input, and store question and answer as a turn of a conversation: the one of `conversation` or
    `previous_response_id`, the one whose messages the input sends back, or a new one. Store nothing with `store:
    false`, or with tools, a format or a history of the client's own."""
    user = request.auth.user
    await check_message_rate(user.pk, client_address(request))
    asked, answer = await sync_to_async(_understood)(user, asked)
    if asked.is_stored or answer:
        source = await _turn_source(user, asked, answer, idempotency_key)
    else:
        source = await _call_source(user, asked)
    await sync_to_async(close_old_connections)()  # the answer may take minutes
    items = await after_first_item(source.items)
    writer = ResponseWriter(source.head, source.answer_name)
    if asked.stream:
        return event_stream(request.auth, response_events(items, writer))
    finished = Finished("stop")
    async with aclosing(items):
        async for item in items:
            writer.take(item)
            if isinstance(item, Finished):
                finished = item
    return JsonResponse(writer.finished(finished.usage, finished.reason))


def _understood(user: User, asked: NewResponse) -> tuple[NewResponse, Message | None]:
    """Return (the request with references resolved, the stored answer that it continues)."""
    # Resolve references first: one of them may be the answer that the input continues.
    asked = with_items(user, asked)
    # Don't compare the history of these requests: they name their conversation, or are a single call.
    if asked.names_place or asked.tools or asked.has_format or asked.store is False:
        return asked, None
    answer = continued_answer(user, asked)
    if asked.store and asked.has_history and answer is None:
        raise Unsupported("store", NO_HISTORY_OF_CLIENTS)
    return asked, answer


# --- without storing


async def _call_source(user: User, asked: NewResponse) -> Source:
    if asked.conversation or asked.previous_response_id:
        message = "A response of a conversation is stored; leave `store` out."
        raise Unsupported("store", message)
    # Convert in threads, because there may be thousands of messages.
    messages = await asyncio.to_thread(asked.chat_messages)
    if asked.instructions:
        messages.insert(0, ChatMessage(role="system", content=asked.instructions))
    images = await inline_images([address for message in messages for address in message.image_addresses])
    request = ModelRequest(
        messages=await asyncio.to_thread(model_messages, messages, images),
        max_output_tokens=asked.max_output_tokens or 0,
        tools=tuple(tool.spec() for tool in asked.tools or ()),
        temperature=asked.temperature,
        options=asked.options(),
    )
    config, request = await sync_to_async(model_request)(user, asked.model, request)
    head = ResponseHead(new_name("resp"), float(int(time.time())), config.name, is_stored=False)
    repeated = {name: getattr(asked, name) for name in REPEATED if getattr(asked, name) is not None}
    repeated |= {"tools": [tool.model_dump(exclude_none=True) for tool in asked.tools or ()]}
    return Source(ModelCall(user, config, request).items(), _with_asked(head, asked, repeated))


def _with_asked(head: ResponseHead, asked: NewResponse, repeated: Mapping[str, Any]) -> ResponseHead:
    """Return the head with the fields of the request that a response repeats."""
    fields = {**repeated, "instructions": asked.instructions, "metadata": asked.metadata or {}}
    return replace(head, asked=fields)


# --- as a turn of a conversation


async def _turn_source(user: User, asked: NewResponse, answer: Message | None, key: str | None) -> Source:
    if asked.tools:
        raise Unsupported("tools", NO_TOOLS_OF_CLIENTS)
    if asked.has_format:
        raise Unsupported("text.format", NO_FORMATS_OF_CLIENTS)
    if asked.conversation and asked.previous_response_id:
        raise Unsupported("previous_response_id", "Send either `conversation` or `previous_response_id`.")
    messages = await asyncio.to_thread(asked.chat_messages)
    turn = await new_turn(messages, key, field="input", instructions=asked.instructions or "")
    receipt, head = await sync_to_async(_begin)(user, asked, answer, turn)
    follower = TurnFollower(user, receipt)
    return Source(follower.items(), _with_asked(head, asked, {}), named("msg", receipt.answer_id))


def _begin(
    user: User, asked: NewResponse, answer: Message | None, turn: NewTurn
) -> tuple[Receipt, ResponseHead]:
    """Store the question, and the response that will answer it. Raise NotFound, Conflict."""
    config = accessible_model(user.pk, asked.model) if asked.model else None
    name = asked.conversation_name
    previous = accessible_response(user, asked.previous_response_id) if asked.previous_response_id else None
    conversation = named_conversation(user, name) if name else None
    answer = previous.run.answer if previous else answer
    if answer is not None:
        conversation = named_conversation(user, str(answer.conversation_id))
        turn = replace(turn, parent_id=str(answer.pk))
    answering = config or (model_of(conversation) if conversation else default_model(user.pk))
    receipt = begin_turn(user, conversation, turn, config)
    row = store_response(
        user=user,
        run_id=receipt.run_id,
        previous=previous,
        owns_turn=name is None,
        metadata=asked.metadata or {},
        now=clock.now(),
    )
    return receipt, _head_of(row, receipt.conversation_id, answering.name)


def _head_of(row: StoredResponse, conversation_id: str, model_name: str) -> ResponseHead:
    return ResponseHead(
        named("resp", row.pk),
        seconds(row.created_at),
        model_name,
        is_stored=True,
        conversation_id=conversation_id,
        previous=named("resp", row.previous) if row.previous else None,
        metadata=row.metadata,
    )


# --- reading stored responses


@router.get("/responses/{response_id}", auth=allow("chat", "read"))
def read_response(request: ApiRequest, response_id: str) -> HttpResponseBase:
    """Show a stored response; it is `in_progress` while it is being written."""
    row = accessible_response(request.auth.user, response_id)
    run, answer = row.run, row.run.answer
    head = _head_of(row, str(run.conversation_id), answer.model_name or (run.model.name if run.model else ""))
    text = text_of(answer.parts)
    output = [message_output(named("msg", answer.pk), text)] if text else []
    usage = usage_of(run.usage) if run.usage else None
    status, reason = _status_of(run, answer)
    error = {"code": "server_error", "message": run.error_message} if status == "failed" else None
    return JsonResponse(response_shape(head, status, output=output, usage=usage, error=error, reason=reason))


def _status_of(run: Run, answer: Message) -> tuple[str, str]:
    """Return (status, reason if the response is incomplete)."""
    if run.status in Run.ACTIVE:
        return "in_progress", ""
    # Check the answer first: the run is complete even if its answer was cut at a limit.
    if answer.status == Message.Status.CUT:
        return "incomplete", run.error_category if run.error_category == "content_filter" else "length"
    known = {Run.Status.COMPLETE: "completed", Run.Status.STOPPED: "cancelled"}
    return known.get(Run.Status(run.status), "failed"), ""


@router.get("/responses/{response_id}/input_items", auth=allow("chat", "read"))
def list_input(
    request: ApiRequest,
    response_id: str,
    limit: PageSize = 20,
    order: Order = "desc",
    after: Label | None = None,
) -> HttpResponseBase:
    """List the message that the response answers. It is the only item, so nothing comes after it."""
    question = accessible_response(request.auth.user, response_id).run.question
    return JsonResponse(
        list_object([message_item(question)] if question and not after else [], has_more=False)
    )


@router.delete("/responses/{response_id}", auth=allow("chat"))
def remove_response(request: ApiRequest, response_id: str) -> HttpResponseBase:
    """Forget question and answer, with everything derived from them. If the client named the conversation, they stay as
    its items."""
    user = request.auth.user
    row = accessible_response(user, response_id)
    # Read these first, because the row is deleted before they are used.
    conversation_id, question, answer = row.run.conversation_id, row.run.question_id, row.run.answer_id
    if not row.owns_turn:
        delete_response(row)
    # This is the only turn: forget the whole conversation and what derives from it.
    elif not _says_more(row.run):
        forget_whole_conversation(user, str(conversation_id), now=clock.now())
    else:
        delete_response(row)
        for message_id in filter(None, (question, answer)):
            _forget(user, str(conversation_id), str(message_id))
    return JsonResponse({"id": response_id, "object": "response", "deleted": True})


def _says_more(run: Run) -> bool:
    """Return whether the conversation contains anything else, from other turns or from items without a turn."""
    others = Message.objects.filter(conversation=run.conversation_id, role__in=SPOKEN)
    others = others.exclude(pk__in=[run.question_id, run.answer_id]).exclude(parts=[])
    said = others.values_list("parts", flat=True).iterator(chunk_size=100)
    # Tool calls don't count, because they are deleted with their answer.
    return any(part["type"] in ("text", "image", "file") for parts in said for part in parts)


def _forget(user: User, conversation_id: str, message_id: str) -> None:
    try:
        delete_message(user, conversation_id, message_id, now=clock.now())
    except NotFound:
        return  # already forgotten
