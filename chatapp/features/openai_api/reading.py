"""Converts what clients send into the messages of a model call: roles, parts, tool calls, images."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping, Sequence

import httpx2
from django.conf import settings

from agents.guarded_http import ForbiddenHost, GuardedTransport, HostRules
from chatapp.features.openai_api.schemas import ChatMessage, ImageContent
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.errors import InvalidInput
from memory.bounds import MAX_ATTACHMENTS
from memory.tokens import estimate_parts
from memory.types import ImagePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
IMAGE_TIMEOUT_S = 20.0
PIECE_CHARS = 2**19
"""Base64 characters decoded at a time, in about 2 ms. Must be a multiple of 4."""


def model_messages(sent: Sequence[ChatMessage], images: Mapping[str, str]) -> tuple[Message, ...]:
    """Return the messages of a model call. `images` maps addresses to data URLs."""
    # A tool result contains only the id of its call, not the tool's name.
    names = {call.id: call.function.name for message in sent for call in message.tool_calls or ()}
    return tuple(_message(message, images, names) for message in sent)


def _message(sent: ChatMessage, images: Mapping[str, str], names: Mapping[str, str]) -> Message:
    parts: list[Part] = []
    if sent.role == "tool":
        call_id = sent.tool_call_id or ""
        parts = [ToolResultPart(call_id, names.get(call_id, ""), "\n".join(sent.texts))]
    else:
        if sent.reasoning_content and sent.tool_calls:
            parts.append(ReasoningPart(sent.reasoning_content))
        parts += _content_parts(sent, images)
        parts += [
            ToolCallPart(call.id, call.function.name, call.function.arguments)
            for call in sent.tool_calls or ()
        ]
    return Message(sent.stored_role, tuple(parts), estimate_parts(parts))


def _content_parts(sent: ChatMessage, images: Mapping[str, str]) -> list[Part]:
    if isinstance(sent.content, str):
        return [TextPart(sent.content)]
    parts: list[Part] = []
    for part in sent.content or ():
        if isinstance(part, ImageContent):
            parts.append(ImagePart("", "image", data_url=images[part.image_url.url]))
        else:
            parts.append(TextPart(part.text))
    # Clients send a refusal back beside null content.
    return parts or ([TextPart(sent.refusal)] if sent.refusal else [])


async def inline_images(addresses: Iterable[str]) -> dict[str, str]:
    """Return the data URL of each address, fetching images if necessary. Raise InvalidInput."""
    wanted = dict.fromkeys(addresses)
    fetched = [address for address in wanted if not address.startswith("data:")]
    if len(fetched) > MAX_ATTACHMENTS:
        raise _unusable(f"At most {MAX_ATTACHMENTS} images are fetched for one request.")
    for address in wanted:
        # Check data URLs before fetching any image, so that an invalid request contacts no other host.
        if address.startswith("data:"):
            await asyncio.to_thread(decoded_image, address)
    return {address: address for address in wanted if address not in fetched} | {
        address: await fetch_image(address) for address in fetched
    }


def decoded_image(data_url: str) -> bytes:
    """Return the bytes of a data URL. Raise InvalidInput."""
    head, _, body = data_url.partition(",")
    # The second condition is needed because `removesuffix` leaves a URL without the suffix unchanged.
    if head.removesuffix(";base64") not in {f"data:{kind}" for kind in IMAGE_TYPES} or head[-7:] != ";base64":
        raise _unusable("An image must be a data URL with base64, of PNG, JPEG, WebP or GIF.")
    try:
        content = _decode(body)
    except ValueError:
        raise _unusable("The data URL of an image is not valid base64.") from None
    if len(content) > settings.MAX_UPLOAD_BYTES:
        raise _unusable(f"An image is larger than {settings.MAX_UPLOAD_BYTES:,} bytes.")
    return content


def _decode(text: str) -> bytes:
    """Decode base64 in pieces, because decoding a piece blocks all other threads. Raise ValueError."""
    if text.find("=", 0, -2) >= 0:  # accepted at the end of a piece
        raise ValueError("padding before the end")
    pieces = (text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))
    return b"".join(base64.b64decode(piece, validate=True) for piece in pieces)


async def fetch_image(address: str) -> str:
    """Fetch an image and return it as a data URL, from hosts that the operator allows only. Raise InvalidInput."""
    rules = HostRules(tuple(current("HTTP_FETCH_HOSTS")), tuple(current("HTTP_FETCH_OWN_HOSTS")))
    transport = GuardedTransport(rules, max_bytes=settings.MAX_UPLOAD_BYTES)
    # The transport refuses compressed responses, because it could not bound their size.
    headers = {"Accept": ", ".join(IMAGE_TYPES), "Accept-Encoding": "identity"}
    try:
        async with httpx2.AsyncClient(
            transport=transport, timeout=IMAGE_TIMEOUT_S, trust_env=False
        ) as client:
            response = await client.get(address, headers=headers)
    except ForbiddenHost as refusal:
        raise _unusable(f"{refusal} Send the image as a data URL.") from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise _unusable(f"An image could not be fetched: {type(error).__name__}.") from None
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code != 200 or kind not in IMAGE_TYPES:
        raise _unusable(f"{response.status_code} {kind[:100]}: this is not a PNG, JPEG, WebP or GIF image.")
    return f"data:{kind};base64,{base64.b64encode(response.content).decode()}"


def _unusable(message: str) -> InvalidInput:
    return InvalidInput.in_field("image_url", message, message, code="invalid_image_url")
