"""A request as it was sent, told by reference: what is stored anyway by its positions, all else word for word.

From that and the stored messages the body is built again; its hash says whether it is the same to the byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agents.types import RequestSent, WireStyle
from agents.wire import write_messages
from memory.types import ImagePart, Message, Part


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """Neighbouring stored messages, sent as they are stored."""

    source: str
    first_position: int
    last_position: int


@dataclass(frozen=True, slots=True)
class OwnText:
    """A message that is stored nowhere else: made for this request, or changed for it."""

    source: str
    message: Message


Piece = StoredSpan | OwnText


@dataclass(frozen=True, slots=True)
class Manifest:
    """`head` is the body with None in the place of its messages and its tools."""

    sha256: str
    head: Mapping[str, Any]
    tools: Sequence[Mapping[str, Any]]
    style: WireStyle
    pieces: tuple[Piece, ...]


def write_manifest(sent: RequestSent, stored: Iterable[Message]) -> Manifest:
    """`stored` are the messages this request was made of, as they are stored."""
    parts_at = {message.position: message.parts for message in stored if message.position is not None}
    return Manifest(
        sha256=hash_body(sent.body),
        head={name: None if name in ("messages", "tools") else value for name, value in sent.body.items()},
        tools=sent.body.get("tools", ()),
        style=sent.style,
        pieces=_write_pieces(sent.request.messages, parts_at),
    )


def _write_pieces(
    messages: Sequence[Message], parts_at: Mapping[int, tuple[Part, ...]]
) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for message in messages:
        source, position = source_of(message), message.position
        if position is None or parts_at.get(position) != _as_stored(message.parts):
            pieces.append(OwnText(source, message))
            continue
        last = pieces[-1] if pieces else None
        if isinstance(last, StoredSpan) and (last.source, last.last_position + 1) == (source, position):
            pieces[-1] = replace(last, last_position=position)
        else:
            pieces.append(StoredSpan(source, position, position))
    return tuple(pieces)


def _as_stored(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Without the bytes of images, which are in view of a call only."""
    if not any(isinstance(part, ImagePart) for part in parts):
        return parts
    return tuple(replace(part, data_url=None) if isinstance(part, ImagePart) else part for part in parts)


def source_of(message: Message) -> str:
    """Why a message is in a request."""
    if message.kind != "message":
        return message.kind
    if message.role == "system" and message.position is None:
        return "system"
    return "history" if message.position is not None or message.role != "user" else "added"


def rebuild_body(
    head: Mapping[str, Any],
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]],
    style: WireStyle,
) -> dict[str, Any]:
    """The body these make, in the order of `head`."""
    written: dict[str, Any] = {"messages": write_messages(messages, style), "tools": list(tools)}
    return {name: written.get(name, value) for name, value in head.items()}


def hash_body(body: Mapping[str, Any]) -> str:
    """The SHA-256 of the bytes that travel."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
