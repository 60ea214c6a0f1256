"""Resolves what a client sends back: item references, and a history that matches a stored conversation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import groupby
from uuid import UUID

from django.conf import settings

from chatapp.accounts.models import User
from chatapp.conversations.message_values import text_of
from chatapp.conversations.models import Message
from chatapp.conversations.selectors.messages import SPOKEN
from chatapp.features.openai_api.response_schemas import (
    InputImage,
    InputText,
    ItemReference,
    MessageItem,
    NewResponse,
    ReasoningItem,
    is_answer,
)
from chatapp.features.openai_api.response_shapes import answer_id_of_reasoning, named, row_id
from chatapp.features.openai_api.schemas import ChatMessage
from chatapp.features.openai_api.selectors import messages_up_to, own_message, own_messages
from chatapp.files.attachments import data_urls_of
from chatapp.files.selectors import attachments_by_id
from chatapp.operations.errors import NotFound, TooLarge

MAX_REFERENCES = 1_000
"""Distinct items that one input may reference. Clients reference each earlier answer of a stored conversation."""
READ_AT_ONCE = 100
TOO_MUCH = "What the input refers to is larger than this service accepts in one request."
Said = tuple[str, str, int]
"""(role, text, number of images)"""


def with_items(user: User, asked: NewResponse) -> NewResponse:
    """Replace the references in the request with the stored items. Raise NotFound, TooLarge."""
    times = Counter(item.id for item in asked.items if isinstance(item, ItemReference))
    if not times:
        return asked
    if len(times) > MAX_REFERENCES:
        sentence = f"An input refers to at most {MAX_REFERENCES:,} items."
        raise TooLarge.in_field("input", sentence, sentence)
    stored = _stored_items(user, times)
    items = [stored[item.id] if isinstance(item, ItemReference) else item for item in asked.items]
    return asked.model_copy(update={"input": items})


def _stored_items(user: User, times: Mapping[str, int]) -> dict[str, MessageItem | ReasoningItem]:
    """Return items by name. `times` is the number of references to each. Raise NotFound, TooLarge."""
    ids = {name: _message_id(name) for name in times}
    times_of = Counter[UUID]()
    for name, count in times.items():
        times_of[ids[name]] += count
    # If they were sent inline, the texts and images could not exceed a request either.
    room = settings.MAX_REQUEST_BYTES
    rows: dict[UUID, Message] = {}
    for row in own_messages(user, times_of).iterator(chunk_size=READ_AT_ONCE):
        room -= times_of[row.pk] * sum(len(part["text"]) for part in row.parts if part["type"] == "text")
        if room < 0:
            raise TooLarge.in_field("input", TOO_MUCH, TOO_MUCH)
        rows[row.pk] = row
    shown = Counter[str]()
    for pk, row in rows.items():
        for file_id in _image_ids(row):
            shown[file_id] += times_of[pk]
    for file_id, file in attachments_by_id(user.pk, shown).items():
        room -= shown[file_id] * file.size_bytes * 4 // 3  # as base64
    if room < 0:
        raise TooLarge.in_field("input", TOO_MUCH, TOO_MUCH)
    images = data_urls_of(user.pk, shown)
    return {name: _item(name, rows.get(pk), images) for name, pk in ids.items()}


def _message_id(name: str) -> UUID:
    try:
        return row_id("msg", answer_id_of_reasoning(name))
    except NotFound:
        raise _not_found(name) from None


def _image_ids(row: Message) -> list[str]:
    return [part["file_id"] for part in row.parts if part["type"] == "image"]


def _item(name: str, row: Message | None, images: Mapping[str, str]) -> MessageItem | ReasoningItem:
    if row is None:
        raise _not_found(name)
    if answer_id_of_reasoning(name) != name:
        return ReasoningItem(type="reasoning", id=name)
    parts: list[InputText | InputImage] = []
    for part in row.parts:
        if part["type"] == "text":
            parts.append(InputText(type="input_text", text=part["text"]))
        elif part["type"] == "image" and part["file_id"] in images:
            parts.append(InputImage(type="input_image", image_url=images[part["file_id"]]))
    return MessageItem.model_validate({"role": row.role, "content": parts, "id": named("msg", row.pk)})


def _not_found(name: str) -> NotFound:
    message = f"Item with id '{name}' not found. Items are kept by responses that are stored."
    return NotFound.in_field("input", message, message)


def continued_answer(user: User, asked: NewResponse) -> Message | None:
    """Return the stored answer that the input continues, if everything before it matches its conversation word for
    word. None means that the client keeps the history itself."""
    answers = [item for item in asked.items if is_answer(item)]
    try:
        # The id of the last answer is enough to find the conversation; everything before it must have the same words.
        answer = own_message(user, (answers[-1].id or "") if answers else "")
    except NotFound:
        return None
    messages = asked.chat_messages()
    # Stored conversations use no tools of clients.
    if any(message.role == "tool" or message.tool_calls for message in messages):
        return None
    last = max(at for at, message in enumerate(messages) if message.role == "assistant")
    told = _grouped(map(_said, messages[: last + 1]))
    # Read one row more than was sent, not all of a long conversation. Skip prompts: each change stored one.
    spoken = messages_up_to(answer).filter(role__in=SPOKEN)
    rows = spoken.order_by("position")[: last + 2]
    return answer if told == _grouped(map(_stored, rows)) else None


def _said(message: ChatMessage) -> Said:
    return message.role, "\n".join(message.texts), len(message.image_addresses)


def _stored(row: Message) -> Said:
    return row.role, text_of(row.parts), sum(part["type"] == "image" for part in row.parts)


def _grouped(said: Iterable[Said]) -> list[Said]:
    """Return what user and model said in turn, without instructions, which are stored separately."""
    talk = (each for each in said if each[0] in SPOKEN)
    # Several inputs in a row are stored as one question.
    turns = [(role, list(group)) for role, group in groupby(talk, key=lambda each: each[0])]
    return [
        (role, "\n".join(text for _, text, _ in group).strip(), sum(count for _, _, count in group))
        for role, group in turns
    ]
