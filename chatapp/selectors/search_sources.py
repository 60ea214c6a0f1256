"""The words behind what a search found: the index holds none, they are read from the rows it stands for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple
from uuid import UUID

from chatapp import mapping
from chatapp.models import Conversation, MemoryEntry, Message, SearchDocument
from chatapp.selectors.scopes import shared_entries


class Place(NamedTuple):
    """Where a document's words are: `start` to `end` of its source."""

    kind: int
    source_id: UUID
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """A document that was found, with its words read from its source. `is_whole`: the source says no more. An entry
    that another user shares is of the kind `shared`."""

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


def read_places(
    user_id: UUID, places: Sequence[tuple[Place, float]], scope_id: UUID | None = None
) -> list[Found]:
    """In the order given, each with its score; what lost its source meanwhile is left out. Of others only what this
    scope shares is read, without a word of where it was said."""
    messages = _messages(user_id, _source_ids(places, SearchDocument.Kind.MESSAGE))
    entries = _entries(user_id, _source_ids(places, SearchDocument.Kind.ENTRY))
    if scope_id is not None:
        entries |= _shared(user_id, scope_id, _source_ids(places, SearchDocument.Kind.ENTRY) - set(entries))
    found = []
    for place, score in places:
        if place.source_id in messages:
            found.append(_found_message(place, score, *messages[place.source_id]))
        elif place.source_id in entries:
            found.append(_found_entry(user_id, place, score, entries[place.source_id]))
    return found


def _source_ids(places: Iterable[tuple[Place, float]], kind: int) -> set[UUID]:
    return {place.source_id for place, _ in places if place.kind == kind}


_MESSAGE_COLUMNS = ("conversation_id", "branch_id", "position", "role", "parts", "created_at")


def _messages(user_id: UUID, ids: set[UUID]) -> dict[UUID, tuple[Any, ...]]:
    """Plain columns: a recall reads hundreds, and rows as objects take three times as long. Whose they are is asked
    apart, because SQLite answers a join by reading everything the user ever said."""
    if not ids:
        return {}
    rows = list(Message.objects.filter(pk__in=ids).values_list("pk", *_MESSAGE_COLUMNS))
    theirs = Conversation.objects.filter(pk__in={row[1] for row in rows}, user_id=user_id, temporary=False)
    allowed = set(theirs.values_list("pk", flat=True))
    return {row[0]: row for row in rows if row[1] in allowed}


def _entries(user_id: UUID, ids: set[UUID]) -> dict[UUID, MemoryEntry]:
    return MemoryEntry.objects.filter(user_id=user_id).in_bulk(list(ids)) if ids else {}


def _shared(user_id: UUID, scope_id: UUID, ids: set[UUID]) -> dict[UUID, MemoryEntry]:
    return shared_entries(scope_id).exclude(user=user_id).in_bulk(list(ids)) if ids else {}


def _found_message(
    place: Place,
    score: float,
    message_id: UUID,
    conversation_id: UUID,
    branch_id: UUID,
    position: int,
    role: str,
    parts: Any,
    created_at: datetime,
) -> Found:
    text = mapping.text_of(parts)
    return Found(
        kind="message",
        text=text[place.start : place.end].strip(),
        score=score,
        said_at=created_at,
        is_whole=place.start == 0 and place.end >= len(text),
        role=role,
        conversation_id=conversation_id,
        message_id=message_id,
        branch_id=branch_id,
        position=position,
        start=place.start,
    )


def _found_entry(user_id: UUID, place: Place, score: float, row: MemoryEntry) -> Found:
    is_own = row.user_id == user_id
    return Found(
        kind="entry" if is_own else "shared",
        text=row.text[place.start : place.end].strip(),
        score=score,
        said_at=row.created_at,
        is_whole=place.start == 0 and place.end >= len(row.text),
        conversation_id=row.conversation_id if is_own else None,
        entry_id=row.pk,
        day=row.day,
        start=place.start,
    )
