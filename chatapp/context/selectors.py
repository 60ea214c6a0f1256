"""The requests of a run, what one of them is built from again, and what texts of them say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from agents.manifest import Manifest, OwnText, StoredSpan, hash_text, read_manifest
from agents.references import keys_in, read_references
from chatapp.context.models import RequestText, SentRequest
from chatapp.context.sources import source_texts
from chatapp.conversations.message_values import MESSAGE_COLUMNS, messages_from_columns
from chatapp.conversations.models import Message
from chatapp.forgetting.models import Removal
from chatapp.operations.errors import NotFound
from chatapp.runs.models import Run
from memory.types import Message as MessageValue


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """`messages` by position and `texts` by hash: those that are still there."""

    row: SentRequest
    manifest: Manifest
    messages: Mapping[int, MessageValue]
    texts: Mapping[str, str]


def requests_of(run: Run) -> list[SentRequest]:
    return list(SentRequest.objects.filter(run=run).defer("manifest").order_by("n"))


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
    """Return the messages by position, without those that were deleted and left only their place."""
    where = Q(pk=None)
    for span in spans:
        where |= Q(position__gte=span.first_position, position__lte=span.last_position)
    rows = Message.objects.filter(where, conversation_id=run.conversation_id).values_list(*MESSAGE_COLUMNS)
    messages = messages_from_columns(list(rows))
    return {
        message.position: message for message in messages if message.parts and message.position is not None
    }


def _texts(run: Run, own: list[OwnText]) -> dict[str, str]:
    """Return the texts by hash, without those that a row they refer to says otherwise now."""
    hashes = {piece.text_sha256 for piece in own}
    rows = RequestText.objects.filter(conversation_id=run.conversation_id, sha256__in=hashes)
    phases = (Removal.Phase.CHOSEN, Removal.Phase.BEHIND)
    forgetting = Removal.objects.filter(user_id=run.user_id, phase__in=phases)
    for chosen in forgetting.values_list("chosen", flat=True):
        if str(run.conversation_id) in chosen.get("conversations", ()):  # they are being deleted, in pieces
            rows = rows.exclude(pk__lte=chosen["newest_request_text"])
    written = {sha256: json.loads(content) for sha256, content in rows.values_list("sha256", "content")}
    sources = source_texts({key for segments in written.values() for key in keys_in(segments)})
    texts = {sha256: read_references(segments, sources) for sha256, segments in written.items()}
    return {sha256: text for sha256, text in texts.items() if hash_text(text) == sha256}


def strings_in(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value, without the names in its objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_in(item)
