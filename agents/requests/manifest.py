"""Store a request as sent, by reference: stored messages by position, everything else once under its hash.

The body can be rebuilt from these, and its hash shows whether it is identical to the byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from agents.chat_models.wire import encode_body, write_json, write_messages
from agents.requests.references import Segment, Sources, write_references
from agents.types import RequestSent, WireStyle
from memory.tokens import text_message
from memory.types import Message, Part, with_data_urls

State = Literal["sent", "deleted", "forgotten"]
PieceSource = Literal[
    "system", "profile", "summary", "reminder", "history", "injected", "recall", "hook", "question"
]
TOOLS = "tools"
SYSTEM = "system"
MISSING = {"deleted": "[This message was deleted]", "forgotten": "[This text was forgotten]"}


@dataclass(frozen=True, slots=True)
class StoredSpan:
    """Consecutive stored messages, sent as they are stored."""

    source: str
    first_position: int
    last_position: int


@dataclass(frozen=True, slots=True)
class OwnText:
    """Content made or changed for this request, under the hash of its text."""

    source: str
    text_sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`head` is the body in its original order, with None in place of its messages and tools."""

    sha256: str
    head: dict[str, Any]
    style: WireStyle
    pieces: tuple[StoredSpan | OwnText, ...]
    tools: OwnText | None = None


@dataclass(frozen=True, slots=True)
class ShownPiece:
    """One message of a rebuilt request. `message` is a placeholder if the original is gone."""

    source: str
    message: Message
    state: State = "sent"


_MANIFEST = TypeAdapter(Manifest)
_MESSAGE = TypeAdapter(Message)


def read_manifest(stored: str) -> Manifest:
    # An earlier version stored this for edited answers. Within a text, the quotes would be escaped.
    return _MANIFEST.validate_json(stored.replace('"source":"edited"', '"source":"history"'))


def dump_manifest(manifest: Manifest) -> str:
    return _MANIFEST.dump_json(manifest).decode()


Texts = dict[OwnText, list[Segment]]


def write_manifest(
    sent: RequestSent, stored: Iterable[Message], sources: Callable[[], Sources]
) -> tuple[Manifest, Texts]:
    """Return the manifest and the texts it refers to, which refer to the `sources` for what they repeat.

    `stored` are the messages the request was built from, as stored. `sources` is called only if a text may repeat
    something: system prompts and tools do not contain users' words.
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
        # The bytes of images are stored as references.
        plain = with_data_urls(message, {})
        # A message that was cut or repaired for this request differs from the stored one, so it is kept as sent.
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
    """Return the messages of the request, from `stored` by position or `texts` by hash. A message in neither is shown
    as gone."""
    return tuple(shown for piece in manifest.pieces for shown in _show_piece(piece, stored, texts))


def rebuild_body(
    manifest: Manifest, pieces: Sequence[ShownPiece], texts: Mapping[str, str], data_urls: Mapping[str, str]
) -> dict[str, Any]:
    """Rebuild the body from these pieces, in its original order; `hash_body` shows whether it equals the one sent."""
    messages = [with_data_urls(piece.message, data_urls) for piece in pieces]
    # If the tools are gone, the body gets another hash, which shows the difference.
    tools = texts.get(manifest.tools.text_sha256, "[]") if manifest.tools else "[]"
    written = {"messages": write_messages(messages, manifest.style), "tools": json.loads(tools)}
    return {name: written.get(name, value) for name, value in manifest.head.items()}


def _show_piece(
    piece: StoredSpan | OwnText, stored: Mapping[int, Message], texts: Mapping[str, str]
) -> Iterator[ShownPiece]:
    if isinstance(piece, OwnText):
        content = texts.get(piece.text_sha256)
        if content is None:
            yield _gone(piece, "forgotten")
        else:
            yield ShownPiece(piece.source, _MESSAGE.validate_json(content))
        return
    for position in range(piece.first_position, piece.last_position + 1):
        message = stored.get(position)
        yield ShownPiece(piece.source, message) if message else _gone(piece, "deleted", position)


def _gone(
    piece: StoredSpan | OwnText, state: Literal["deleted", "forgotten"], position: int | None = None
) -> ShownPiece:
    stand_in = text_message("system" if piece.source == SYSTEM else "user", MISSING[state])
    return ShownPiece(piece.source, replace(stand_in, position=position), state)


def hash_body(body: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the body's bytes as sent."""
    return hashlib.sha256(encode_body(body)).hexdigest()
