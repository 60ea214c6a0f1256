"""Knows what a client sends back: items named by reference, and a history that is a stored conversation."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.features.openai_api.response_schemas import (
    InputImage,
    InputText,
    ItemReference,
    MessageItem,
    NewResponse,
    ReasoningItem,
    is_answer,
)
from chatapp.features.openai_api.response_shapes import answer_of_reasoning, named
from chatapp.features.openai_api.schemas import ChatMessage
from chatapp.features.openai_api.selectors import messages_up_to, own_message
from chatapp.files.attachments import data_urls_of
from chatapp.operations.errors import NotFound

SPOKEN = ("user", "assistant")
Said = tuple[str, str, int]
"""A role, its text, and its number of images."""


def with_items(user: User, asked: NewResponse) -> NewResponse:
    """Return the request with each item that it names by reference in its place. Raise NotFound."""
    if not any(isinstance(item, ItemReference) for item in asked.items):
        return asked
    # Each once, however often it is named: it may have images, which are read whole.
    names = {item.id for item in asked.items if isinstance(item, ItemReference)}
    stored = {name: _stored_item(user, name) for name in sorted(names)}
    items = [stored[item.id] if isinstance(item, ItemReference) else item for item in asked.items]
    return asked.model_copy(update={"input": items})


def _stored_item(user: User, name: str) -> MessageItem | ReasoningItem:
    answer_name = answer_of_reasoning(name)
    try:
        row = own_message(user, answer_name)
    except NotFound:
        message = f"Item with id '{name}' not found. Items are kept by responses that are stored."
        raise NotFound(message, details=[{"field": "input", "message": message}]) from None
    if answer_name != name:
        return ReasoningItem(type="reasoning", id=name)
    images = data_urls_of(user.pk, [part["file_id"] for part in row.parts if part["type"] == "image"])
    parts: list[InputText | InputImage] = []
    for part in row.parts:
        if part["type"] == "text":
            parts.append(InputText(type="input_text", text=part["text"]))
        elif part["type"] == "image" and part["file_id"] in images:
            parts.append(InputImage(type="input_image", image_url=images[part["file_id"]]))
    return MessageItem.model_validate({"role": row.role, "content": parts, "id": named("msg", row.pk)})


def continued_answer(user: User, asked: NewResponse) -> Message | None:
    """Return the stored answer that the input continues: with everything before it word for word, as its conversation
    has it. None where the history is the client's own."""
    answers = [item for item in asked.items if is_answer(item)]
    try:
        # The id of the last answer alone names the conversation: what is before it has to have the same words.
        answer = own_message(user, (answers[-1].id or "") if answers else "")
    except NotFound:
        return None
    messages = asked.chat_messages()
    # Stored conversations use no tools of clients.
    if any(message.role == "tool" or message.tool_calls for message in messages):
        return None
    last = max(at for at, message in enumerate(messages) if message.role == "assistant")
    told = _grouped(map(_said, messages[: last + 1]))
    # One more than were sent, so that a long conversation is not read whole. Each change of the prompt stored one.
    spoken = messages_up_to(answer).filter(role__in=SPOKEN)
    rows = spoken.order_by("position")[: last + 2]
    return answer if told == _grouped(map(_stored, rows)) else None


def _said(message: ChatMessage) -> Said:
    return message.role, "\n".join(message.texts), len(message.image_addresses)


def _stored(row: Message) -> Said:
    texts = [part["text"] for part in row.parts if part["type"] == "text"]
    return row.role, "\n".join(texts), sum(part["type"] == "image" for part in row.parts)


def _grouped(said: Iterable[Said]) -> list[Said]:
    """Return what user and model said in turn: instructions, which are kept apart, are left out."""
    talk = (each for each in said if each[0] in SPOKEN)
    # Several inputs in a row are stored as one question.
    turns = [(role, list(group)) for role, group in groupby(talk, key=lambda each: each[0])]
    return [
        (role, "\n".join(text for _, text, _ in group).strip(), sum(count for _, _, count in group))
        for role, group in turns
    ]
