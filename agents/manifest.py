"""A request as it was sent, by reference: stored messages by their positions, all else once under its hash.

From these the body is built again; its hash says whether it is the same to the byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from agents.references import Segment, Sources, write_references
from agents.types import RequestSent, WireStyle
from agents.wire import encode_body, write_json, write_messages
from memory.tokens import text_message
from memory.types import ImagePart, Message, Part

State = Literal["sent", "deleted", "forgotten"]
PieceSource = Literal[
    "system", "profile", "summary", "reminder", "history", "injected", "recall", "hook", "question"
]
TOOLS = "tools"
SYSTEM = "system"
MISSING = {"deleted": "[This message was deleted]", "forgotten": "[This text was forgotten]"}


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """Neighbouring stored messages, sent as they are stored."""

    source: str
    first_position: int
    last_position: int


@dataclass(frozen=True, slots=True)
class OwnText:
    """What was made for this request, or changed for it, under the hash of its text."""

    source: str
    text_sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`head` is the body in its order, with None in the place of its messages and its tools."""

    sha256: str
    head: dict[str, Any]
    style: WireStyle
    pieces: tuple[StoredSpan | OwnText, ...]
    tools: OwnText | None = None


@dataclass(frozen=True, slots=True)
class ShownPiece:
    """One message of a request that is built again. `message` stands in for what is gone."""

    source: str
    message: Message
    state: State = "sent"


_MANIFEST = TypeAdapter(Manifest)
_MESSAGE = TypeAdapter(Message)


def read_manifest(stored: str) -> Manifest:
    return _MANIFEST.validate_json(stored)


def dump_manifest(manifest: Manifest) -> str:
    return _MANIFEST.dump_json(manifest).decode()


Texts = dict[OwnText, list[Segment]]


def write_manifest(
    sent: RequestSent, stored: Iterable[Message], sources: Callable[[], Sources]
) -> tuple[Manifest, Texts]:
    """Return the manifest and the texts that it names, each with what it repeats of the `sources` by reference.

    `stored` are the messages the request was made of, as they are stored. `sources` is called only where a text may
    repeat something: system prompts and tools are nobody's words.
    """
    parts_at = {message.position: message.parts for message in stored if message.position is not None}
    contents: dict[OwnText, str] = {}
    tools = sent.body.get("tools")
    manifest = Manifest(
        sha256=hashlib.sha256(sent.content).hexdigest(),
        head={name: None if name in ("messages", "tools") else value for name, value in sent.body.items()},
        style=sent.style,
        pieces=tuple(_write_pieces(sent.request.messages, parts_at, contents)),
        tools=_keep(TOOLS, write_json(tools), contents) if tools else None,
    )
    return manifest, _write_texts(contents, sources)


def _write_pieces(
    messages: Sequence[Message],
    parts_at: Mapping[int, tuple[Part, ...]],
    contents: dict[OwnText, str],
) -> Iterator[StoredSpan | OwnText]:
    span: StoredSpan | None = None
    for message in messages:
        source, position = source_of(message), message.position
        plain = _without_bytes(message)
        # What was cut or repaired for this request differs from what is stored, and is kept as it was sent.
        is_stored = position is not None and parts_at.get(position) == plain.parts
        if is_stored and span and (span.source, span.last_position + 1) == (source, position):
            span = replace(span, last_position=span.last_position + 1)
            continue
        if span:
            yield span
        span = StoredSpan(source, position, position) if is_stored and position is not None else None
        if span is None:
            yield _keep(source, _MESSAGE.dump_json(plain, exclude_none=True).decode(), contents)
    if span:
        yield span


def _keep(source: str, content: str, contents: dict[OwnText, str]) -> OwnText:
    kept = OwnText(source, hash_text(content))
    contents[kept] = content
    return kept


def _write_texts(contents: Mapping[OwnText, str], sources: Callable[[], Sources]) -> Texts:
    texts: Texts = {kept: [content] for kept, content in contents.items()}
    words = [kept for kept in contents if kept.source not in (SYSTEM, TOOLS)]
    if words:
        written = write_references([contents[kept] for kept in words], sources())
        texts.update(zip(words, written, strict=True))
    return texts


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _without_bytes(message: Message) -> Message:
    """Return the message without the bytes of its images, which are stored as references."""
    if not any(isinstance(part, ImagePart) for part in message.parts):
        return message
    parts = (replace(part, data_url=None) if isinstance(part, ImagePart) else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def source_of(message: Message) -> PieceSource:
    """Return why a message is in a request."""
    if message.kind != "message" and message.kind != "quoted":
        return message.kind
    if message.role == "system" and message.position is None:
        return "system"
    return "history" if message.position is not None or message.role != "user" else "hook"


def show_pieces(
    manifest: Manifest, stored: Mapping[int, Message], texts: Mapping[str, str]
) -> tuple[ShownPiece, ...]:
    """Return the messages of the request, from `stored` by position and `texts` by hash; a message in neither is shown
    as gone."""
    return tuple(shown for piece in manifest.pieces for shown in _show_piece(piece, stored, texts))


def rebuild_body(
    manifest: Manifest, pieces: Sequence[ShownPiece], texts: Mapping[str, str], data_urls: Mapping[str, str]
) -> dict[str, Any]:
    """Return the body that these pieces make, in its order; `hash_body` tells whether it is the one that was sent."""
    messages = [_with_bytes(piece.message, data_urls) for piece in pieces]
    # Tools that are gone give the body another hash, which tells it.
    tools = texts.get(manifest.tools.text_sha256, "[]") if manifest.tools else "[]"
    written = {"messages": write_messages(messages, manifest.style), "tools": json.loads(tools)}
    return {name: written.get(name, value) for name, value in manifest.head.items()}


def _show_piece(
    piece: StoredSpan | OwnText, stored: Mapping[int, Message], texts: Mapping[str, str]
) -> Iterator[ShownPiece]:
    if isinstance(piece, OwnText):
        content = texts.get(piece.text_sha256)
        yield _gone(piece, "forgotten") if content is None else _own(piece, content)
        return
    for position in range(piece.first_position, piece.last_position + 1):
        message = stored.get(position)
        yield ShownPiece(piece.source, message) if message else _gone(piece, "deleted", position)


def _own(piece: OwnText, content: str) -> ShownPiece:
    return ShownPiece(piece.source, _MESSAGE.validate_json(content))


def _gone(
    piece: StoredSpan | OwnText, state: Literal["deleted", "forgotten"], position: int | None = None
) -> ShownPiece:
    stand_in = text_message("system" if piece.source == SYSTEM else "user", MISSING[state])
    return ShownPiece(piece.source, replace(stand_in, position=position), state)


def _with_bytes(message: Message, data_urls: Mapping[str, str]) -> Message:
    parts = (
        replace(part, data_url=data_urls.get(part.file_id)) if isinstance(part, ImagePart) else part
        for part in message.parts
    )
    return replace(message, parts=tuple(parts))


def hash_body(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the body's bytes as they are sent."""
    return hashlib.sha256(encode_body(body)).hexdigest()
