"""Rebuilds the requests of a run as they were sent: the body, and each message with the reason why it was included."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from agents.requests.manifest import (
    Manifest,
    OwnText,
    ShownPiece,
    StoredSpan,
    hash_body,
    hash_text,
    read_manifest,
    rebuild_body,
    show_pieces,
)
from agents.requests.references import keys_in, read_references
from chatapp.context.models import RequestText, SentRequest
from chatapp.context.schemas import request_shape
from chatapp.context.sources import source_texts
from chatapp.conversations.message_values import MESSAGE_COLUMNS, messages_from_columns, parts_to_json
from chatapp.conversations.models import Message
from chatapp.conversations.schemas.messages import content_of
from chatapp.files.attachments import data_urls_of
from chatapp.forgetting.models import Removal
from chatapp.operations.errors import NotFound
from chatapp.runs.models import Run
from memory.types import ImagePart
from memory.types import Message as MessageValue


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """`messages` by position and `texts` by hash, as far as they still exist."""

    row: SentRequest
    manifest: Manifest
    messages: Mapping[int, MessageValue]
    texts: Mapping[str, str]


def list_requests(run: Run) -> list[dict[str, Any]]:
    rows = SentRequest.objects.filter(run=run).defer("manifest").order_by("n")
    return [request_shape(row) for row in rows]


def show_request(run: Run, n: int) -> dict[str, Any]:
    """Return request `n` of the run as it was sent. Raise NotFound. Images in the body are replaced by their file ids;
    the hash was checked with their bytes."""
    stored = stored_request(run, n)
    pieces = show_pieces(stored.manifest, stored.messages, stored.texts)
    urls = data_urls_of(run.user_id, _image_ids(pieces))
    body = rebuild_body(stored.manifest, pieces, stored.texts, urls)
    return request_shape(stored.row) | {
        "verified": hash_body(body) == stored.row.sha256,
        "body": _without_bytes(body, {url: file_id for file_id, url in urls.items()}),
        "pieces": [_piece_shape(piece) for piece in pieces],
    }


def _image_ids(pieces: Iterable[ShownPiece]) -> set[str]:
    parts = (part for piece in pieces for part in piece.message.parts)
    return {part.file_id for part in parts if isinstance(part, ImagePart)}


def _piece_shape(piece: ShownPiece) -> dict[str, Any]:
    message = piece.message
    return {
        "source": piece.source,
        "state": piece.state,
        "role": message.role,
        "message_id": message.id,
        "position": message.position,
        "tokens": message.tokens,
        "content": content_of(parts_to_json(message.parts)),
    }


def _without_bytes(value: Any, file_ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _without_bytes(inner, file_ids) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without_bytes(inner, file_ids) for inner in value]
    if isinstance(value, str) and value in file_ids:
        return f"attachment:{file_ids[value]}"
    return value


def stored_request(run: Run, n: int) -> StoredRequest:
    """Return a request as it was sent. Raise NotFound."""
    row = SentRequest.objects.filter(run=run, n=n).first()
    if row is None:
        raise NotFound()
    manifest = read_manifest(row.manifest)
    spans = [piece for piece in manifest.pieces if isinstance(piece, StoredSpan)]
    own = [piece for piece in (*manifest.pieces, manifest.tools) if isinstance(piece, OwnText)]
    return StoredRequest(row, manifest, _messages(run, spans), _texts(run, own))


def _messages(run: Run, spans: list[StoredSpan]) -> dict[int, MessageValue]:
    """Return the messages by position, without deleted ones, of which only the position is left."""
    # Match nothing for requests that repeat no stored messages.
    where = Q(pk=None)
    for span in spans:
        where |= Q(position__gte=span.first_position, position__lte=span.last_position)
    rows = Message.objects.filter(where, conversation_id=run.conversation_id).values_list(*MESSAGE_COLUMNS)
    messages = messages_from_columns(list(rows))
    return {
        message.position: message for message in messages if message.parts and message.position is not None
    }


def _texts(run: Run, own: list[OwnText]) -> dict[str, str]:
    """Return the texts by hash, without those that differ now because a row that they refer to has changed."""
    hashes = {piece.text_sha256 for piece in own}
    rows = RequestText.objects.filter(conversation_id=run.conversation_id, sha256__in=hashes)
    phases = (Removal.Phase.CHOSEN, Removal.Phase.BEHIND)
    forgetting = Removal.objects.filter(user_id=run.user_id, phase__in=phases)
    for chosen in forgetting.values_list("chosen", flat=True):
        if str(run.conversation_id) in chosen.get("conversations", ()):  # they are being deleted in batches
            rows = rows.exclude(pk__lte=chosen["newest_request_text"])
    written = {sha256: json.loads(content) for sha256, content in rows.values_list("sha256", "content")}
    sources = source_texts({key for segments in written.values() for key in keys_in(segments)})
    texts = {sha256: read_references(segments, sources) for sha256, segments in written.items()}
    return {sha256: text for sha256, text in texts.items() if hash_text(text) == sha256}
