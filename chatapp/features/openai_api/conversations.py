"""`/v1/conversations` and their items: the conversations of the chat in the shape of OpenAI's API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.http import JsonResponse
from django.http.response import HttpResponseBase

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.features.openai_api.actions import NewItem, add_items, begin_conversation, set_metadata
from chatapp.features.openai_api.reading import inline_images
from chatapp.features.openai_api.response_schemas import (
    ConversationUpdate,
    MessageItem,
    NewConversationIn,
    NewItems,
    only_messages,
)
from chatapp.features.openai_api.response_shapes import conversation_object, list_object, message_item
from chatapp.features.openai_api.schemas import ChatMessage, Label, Order, PageSize
from chatapp.features.openai_api.selectors import items_from, message_of_item, metadata_of, shown_messages
from chatapp.features.openai_api.turns import conversation_name, named_conversation, store_images
from chatapp.forgetting.services import delete_message, forget_whole_conversation
from chatapp.operations import clock
from chatapp.operations.http.routers import Router

router = Router()

Images = dict[str, str]
"""Data URLs by image address."""


async def _images_of(items: Sequence[MessageItem]) -> tuple[list[ChatMessage], Images]:
    messages = [item.chat_message() for item in items]
    addresses = [address for message in messages for address in message.image_addresses]
    return messages, await inline_images(addresses)


def _conversation_again(request: ApiRequest, made: str, values: dict[str, Any]) -> HttpResponseBase:
    return read(request, made)


@router.post("/conversations", auth=allow("chat"))
@creates(_conversation_again)
async def create(request: ApiRequest, new: NewConversationIn = NewConversationIn()) -> HttpResponseBase:
    """Create a conversation. Its `items` are earlier messages, which are not answered."""
    messages, images = await _images_of(only_messages(list(new.items or ())))
    made = await sync_to_async(_create)(request.auth.user, messages, images, new.metadata or {})
    return JsonResponse(made)


def _create(
    user: User, messages: Sequence[ChatMessage], images: Images, metadata: dict[str, str]
) -> dict[str, Any]:
    # Store the images first: no row may reference a missing file.
    items = _new_items(user, messages, images)
    conversation = begin_conversation(user=user, items=items, metadata=metadata, now=clock.now())
    return conversation_object(conversation, metadata)


def _new_items(user: User, messages: Sequence[ChatMessage], images: Images) -> list[NewItem]:
    return [
        NewItem(
            message.stored_role,
            "\n".join(message.texts),
            store_images(user, [images[address] for address in message.image_addresses], "items"),
        )
        for message in messages
    ]


@router.get("/conversations/{conversation_id}", auth=allow("chat", "read"))
def read(request: ApiRequest, conversation_id: str) -> HttpResponseBase:
    row = named_conversation(request.auth.user, conversation_id)
    return JsonResponse(conversation_object(row, metadata_of(row)))


@router.post("/conversations/{conversation_id}", auth=allow("chat"))
def update(request: ApiRequest, conversation_id: str, changes: ConversationUpdate) -> HttpResponseBase:
    """Replace the metadata."""
    row, metadata = named_conversation(request.auth.user, conversation_id), changes.metadata or {}
    set_metadata(conversation=row, metadata=metadata)
    return JsonResponse(conversation_object(row, metadata))


@router.delete("/conversations/{conversation_id}", auth=allow("chat"))
def delete(request: ApiRequest, conversation_id: str) -> HttpResponseBase:
    """Delete the conversation with everything in it and derived from it. This cannot be undone."""
    row = named_conversation(request.auth.user, conversation_id)
    forget_whole_conversation(request.auth.user, str(row.pk), now=clock.now())
    return JsonResponse({"id": conversation_name(row.pk), "object": "conversation.deleted", "deleted": True})


# --- items


@router.get("/conversations/{conversation_id}/items", auth=allow("chat", "read"))
def list_items(
    request: ApiRequest,
    conversation_id: str,
    limit: PageSize = 20,
    order: Order = "desc",
    after: Label | None = None,
) -> HttpResponseBase:
    """List the messages of the branch shown. Tool calls are not items."""
    row = named_conversation(request.auth.user, conversation_id)
    rows = shown_messages(row).order_by("position" if order == "asc" else "-position")
    if after:
        position = message_of_item(row, after).position
        rows = rows.filter(position__gt=position) if order == "asc" else rows.filter(position__lt=position)
    # Read one row more to learn whether there is another page.
    found = list(rows[: limit + 1])
    return _page(found[:limit], has_more=len(found) > limit)


def _page(rows: Sequence[Message], *, has_more: bool = False) -> HttpResponseBase:
    return JsonResponse(list_object([message_item(row) for row in rows], has_more=has_more))


def _items_again(request: ApiRequest, made: str, values: dict[str, Any]) -> HttpResponseBase:
    row = named_conversation(request.auth.user, values["conversation_id"])
    return _page(items_from(row, made, len(values["new"].items)))


@router.post("/conversations/{conversation_id}/items", auth=allow("chat"))
@creates(_items_again)
async def create_items(request: ApiRequest, conversation_id: str, new: NewItems) -> HttpResponseBase:
    """Add messages at the end, without an answer."""
    messages, images = await _images_of(only_messages(list(new.items)))
    rows = await sync_to_async(_create_items)(request.auth.user, conversation_id, messages, images)
    return _page(rows)


def _create_items(user: User, name: str, messages: Sequence[ChatMessage], images: Images) -> list[Message]:
    row = named_conversation(user, name)
    items = _new_items(user, messages, images)
    return add_items(user=user, conversation_id=str(row.pk), items=items, now=clock.now())


@router.get("/conversations/{conversation_id}/items/{item_id}", auth=allow("chat", "read"))
def read_item(request: ApiRequest, conversation_id: str, item_id: str) -> HttpResponseBase:
    row = named_conversation(request.auth.user, conversation_id)
    return JsonResponse(message_item(message_of_item(row, item_id)))


@router.delete("/conversations/{conversation_id}/items/{item_id}", auth=allow("chat"))
def delete_item(request: ApiRequest, conversation_id: str, item_id: str) -> HttpResponseBase:
    """Forget the text of a message and everything derived from it."""
    row = named_conversation(request.auth.user, conversation_id)
    message = message_of_item(row, item_id)
    delete_message(request.auth.user, str(row.pk), str(message.pk), now=clock.now())
    return JsonResponse(conversation_object(row, metadata_of(row)))
