"""Reads the texts of documents that a search found. The index itself stores no text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Model

from chatapp.conversations import message_values
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.scopes import shared_entries
from chatapp.operations.database.statements import table_name
from chatapp.recall.models import SearchDocument, SearchOwner
from chatapp.recall.selectors.unindexed import UnindexedDocument


@dataclass(frozen=True, slots=True)
class Found:
    """A document that was found, with its text. `is_whole`: the text is all of its source. An entry shared by another
    user has the kind `shared`."""

    kind: str
    text: str
    score: float
    said_at: datetime
    is_whole: bool
    role: str = ""
    conversation_id: UUID | None = None
    message_id: UUID | None = None
    entry_id: UUID | None = None
    branch_id: UUID | None = None
    position: int = -1
    day: date | None = None
    start: int = 0
    end: int = 0

    @property
    def source_id(self) -> UUID:
        """Return the id of the message or entry that `text` is a piece of."""
        source_id = self.message_id or self.entry_id
        assert source_id is not None
        return source_id


def source_of(found: Found) -> dict[str, Any]:
    """Return where the text was said: `{kind, conversation_id?, message_id?, entry_id?, day?}`."""
    ids = {
        "conversation_id": found.conversation_id,
        "message_id": found.message_id,
        "entry_id": found.entry_id,
        "day": found.day,
    }
    return {"kind": found.kind} | {name: str(value) for name, value in ids.items() if value is not None}


# --- Stored documents -----------------------------------------------------------------------------------

_STORED = """
    SELECT document.ordinal, document.start, document."end",
        CAST(message.id AS text), message.role, message.position, CAST(message.parts AS text),
        CAST(message.created_at AS text), CAST(message.branch_id AS text), CAST(conversation.id AS text),
        CAST(entry.id AS text), entry.text, CAST(entry.created_at AS text),
        CAST(entry.conversation_id AS text), CAST(entry.day AS text)
    FROM {owner} owner CROSS JOIN (VALUES {ordinals}) wanted
    {document}
    {message}
    {conversation}
    {entry}
    WHERE owner.id = %s
"""
"""One statement with plain columns. A recall reads hundreds of texts, and three model instances for each would cost
more than the rest of the recall."""


def read_stored(owner_id: int | None, scores: Mapping[int, float]) -> dict[int, Found]:
    """Return the texts by ordinal, without those whose source is gone. `scores` has the wanted ordinals."""
    if not scores:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_stored_statement(connection.vendor, len(scores)), [*scores, owner_id])
        rows = cursor.fetchall()
    said = [row[:10] for row in rows if row[9] is not None]
    noted = [(*row[:3], *row[10:]) for row in rows if row[10] is not None]
    return dict(_stored_messages(said, scores)) | dict(_stored_entries(noted, scores))


def _stored_statement(vendor: str, count: int) -> str:
    is_message = f"document.kind = {int(SearchDocument.Kind.MESSAGE)}"
    is_entry = f"document.kind = {int(SearchDocument.Kind.ENTRY)}"
    # A conversation that is being deleted has no user any more, so that its texts are not found.
    of_owner = "conversation.user_id = owner.user_id AND NOT conversation.temporary"
    look_up = _look_up_lateral if vendor == "postgresql" else _look_up
    return _STORED.format(
        owner=table_name(SearchOwner),
        ordinals=", ".join(["(%s)"] * count),
        document=look_up(
            "CROSS",
            SearchDocument,
            "document",
            "document.owner_id = owner.id AND document.ordinal = wanted.column1",
        ),
        message=look_up("LEFT", Message, "message", f"message.id = document.source_id AND {is_message}"),
        conversation=look_up(
            "LEFT", Conversation, "conversation", f"conversation.id = message.conversation_id AND {of_owner}"
        ),
        entry=look_up(
            "LEFT",
            MemoryEntry,
            "entry",
            f"entry.id = document.source_id AND {is_entry} AND entry.user_id = owner.user_id",
        ),
    )


def _look_up(join: str, model: type[Model], name: str, condition: str) -> str:
    """Return a join that SQLite does not reorder: in another order, it would read all texts of the user."""
    return f"{join} JOIN {table_name(model)} {name} ON {condition}"


def _look_up_lateral(join: str, model: type[Model], name: str, condition: str) -> str:
    """Return a join that PostgreSQL runs as one look-up per row (due to OFFSET), not as a scan of the table."""
    rows = f"SELECT * FROM {table_name(model)} {name} WHERE {condition} OFFSET 0"
    return f"{join} JOIN LATERAL ({rows}) {name}" + ("" if join == "CROSS" else " ON TRUE")


_read_id = lru_cache(maxsize=1_000)(UUID)
"""Cached for conversations and branches: they are few, and each is read hundreds of times."""


def _stored_messages(
    rows: Sequence[tuple[Any, ...]], scores: Mapping[int, float]
) -> Iterator[tuple[int, Found]]:
    # One call of the parser instead of hundreds.
    all_parts = json.loads(f"[{','.join(row[6] for row in rows)}]")
    for row, parts in zip(rows, all_parts, strict=True):
        ordinal, start, end, message_id, role, position, _, said_at, branch_id, conversation_id = row
        yield (
            ordinal,
            piece_of(
                "message",
                (start, end),
                message_values.text_of(parts),
                score=scores[ordinal],
                said_at=message_values.read_moment(said_at),
                message_id=UUID(message_id),
                conversation_id=_read_id(conversation_id),
                branch_id=_read_id(branch_id),
                position=position,
                role=role,
            ),
        )


def _stored_entries(
    rows: Iterable[tuple[Any, ...]], scores: Mapping[int, float]
) -> Iterator[tuple[int, Found]]:
    for ordinal, start, end, entry_id, text, said_at, conversation_id, day in rows:
        yield (
            ordinal,
            piece_of(
                "entry",
                (start, end),
                text,
                score=scores[ordinal],
                said_at=message_values.read_moment(said_at),
                entry_id=UUID(entry_id),
                conversation_id=_read_id(conversation_id) if conversation_id else None,
                day=date.fromisoformat(day),
            ),
        )


def piece_of(kind: str, span: tuple[int, int], text: str, **source: Any) -> Found:
    """Return the piece of a text in `span`, with the other fields of `Found`."""
    start, end = span
    is_whole = start == 0 and end >= len(text)
    return Found(kind, text[start:end].strip(), is_whole=is_whole, start=start, end=end, **source)


# --- Unindexed and shared documents ---------------------------------------------------------------------------


def unindexed_found(row: UnindexedDocument, score: float) -> Found:
    """Return a document that is not indexed yet, with the text that was read with it."""
    document, message = row.document, row.message
    return piece_of(
        "message",
        (document.start, document.end),
        message.text,
        score=score,
        said_at=message.said_at,
        message_id=message.id,
        conversation_id=message.conversation_id,
        branch_id=message.branch_id,
        position=message.position,
        role=message.role,
    )


def read_shared(
    user_id: UUID, documents: Sequence[SearchDocument], scores: Mapping[int, float], scope_id: UUID | None
) -> dict[int, Found]:
    """Return the texts of entries that the scope shares. Entries of other users do not name their conversation."""
    if not documents or scope_id is None:
        return {}
    entries = shared_entries(scope_id).in_bulk([row.source_id for row in documents])
    return {
        row.ordinal: _shared_entry(user_id, row, scores[row.ordinal], entries[row.source_id])
        for row in documents
        if row.source_id in entries
    }


def _shared_entry(user_id: UUID, document: SearchDocument, score: float, row: MemoryEntry) -> Found:
    is_own = row.user_id == user_id
    return piece_of(
        "entry" if is_own else "shared",
        (document.start, document.end),
        row.text,
        score=score,
        said_at=row.created_at,
        entry_id=row.pk,
        conversation_id=row.conversation_id if is_own else None,
        day=row.day,
    )
