"""Answers that are being written: their text is in pieces until the run has ended."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from chatapp.conversations import message_values
from chatapp.conversations.models import Message
from chatapp.runs.models import AnswerPiece
from memory.types import Part, ReasoningPart, TextPart


def with_stored_pieces(rows: Sequence[Message]) -> Sequence[Message]:
    """The same rows; those that are being written have the parts stored so far."""
    growing = {row.pk: row for row in rows if row.status == Message.Status.STREAMING}
    if not growing:
        return rows
    found: dict[tuple[UUID, str], list[str]] = {}
    pieces = AnswerPiece.objects.filter(message__in=growing).order_by("message", "kind", "offset")
    for message_id, kind, text in pieces.values_list("message_id", "kind", "text"):
        found.setdefault((message_id, kind), []).append(text)
    for pk, row in growing.items():
        thought = "".join(found.get((pk, AnswerPiece.Kind.REASONING), ()))
        said = "".join(found.get((pk, AnswerPiece.Kind.TEXT), ()))
        parts: list[Part] = [
            *([ReasoningPart(thought)] if thought else ()),
            *([TextPart(said)] if said else ()),
        ]
        if parts:
            row.parts = message_values.parts_to_json(parts)
    return rows
