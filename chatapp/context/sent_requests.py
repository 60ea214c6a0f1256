"""A request as it was sent, for its reader: the body built again, each of its messages with why it was in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agents.manifest import ShownPiece, hash_body, rebuild_body, show_pieces
from chatapp.context.schemas import request_shape
from chatapp.context.selectors import requests_of, stored_request
from chatapp.conversations.message_values import parts_to_json
from chatapp.conversations.schemas.messages import content_of
from chatapp.files.attachments import data_urls_of
from chatapp.runs.models import Run
from memory.types import ImagePart


def list_requests(run: Run) -> list[dict[str, Any]]:
    return [request_shape(row) for row in requests_of(run)]


def show_request(run: Run, n: int) -> dict[str, Any]:
    """Return request `n` of the run as it was sent. Raise NotFound. Images in it are named by their file ids; the hash
    was checked with their bytes."""
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
