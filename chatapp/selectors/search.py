"""Reads the search index of one user: what a question needs of it, and the sources behind what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

import numpy as np
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from chatapp import mapping
from chatapp.models import (
    Conversation,
    MemoryEntry,
    Message,
    SearchBlock,
    SearchDocument,
    SearchOwner,
    SearchPosting,
)
from chatapp.search_index import (
    BLOCK,
    COLUMNS,
    Columns,
    Hits,
    Index,
    Ranking,
    StoredTerms,
    hash_term,
    join_terms,
    minute_of,
    rank,
    read_postings,
)
from memory.ranking import Question


@dataclass(frozen=True, slots=True)
class Found:
    """A document that was found, with its words read from its source. `is_whole`: the source says no more."""

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


def unindexed_conversations(user_id: UUID, limit: int) -> list[tuple[UUID, int]]:
    """`(id, how many messages the index lacks)`, those with the newest words first."""
    behind = Q(search_cursor=None, next_position__gt=0) | Q(
        search_cursor__position__lt=F("next_position") - 1
    )
    rows = Conversation.objects.filter(behind, user_id=user_id, temporary=False).order_by("-last_activity_at")
    missing = F("next_position") - 1 - Coalesce(F("search_cursor__position"), -1)
    return list(rows.annotate(missing=missing).values_list("pk", "missing")[:limit])


def _blocks(owner: SearchOwner, tail: Sequence[tuple[int, int, datetime, int]]) -> Columns:
    columns = np.zeros(owner.next_ordinal, COLUMNS)
    columns["previous"] = -1
    for number, stored in SearchBlock.objects.filter(owner=owner).values_list("number", "columns"):
        block = np.frombuffer(stored, COLUMNS)
        columns[number * BLOCK : number * BLOCK + len(block)] = block
    for ordinal, previous, said_at, length in tail:
        columns[ordinal] = (previous, minute_of(said_at), length, 1)
    return columns


def _hits(owner: SearchOwner, terms: Iterable[str], tail: Sequence[StoredTerms]) -> dict[str, Hits]:
    """Sealed postings first, then those of the tail: ascending ordinals."""
    hashes = {hash_term(term): term for term in terms}
    parts: dict[str, list[Hits]] = defaultdict(list)
    rows = SearchPosting.objects.filter(owner=owner, term__in=list(hashes)).order_by("block")
    for term, block, entries in rows.values_list("term", "block", "entries"):
        postings = read_postings(entries)
        parts[hashes[term]].append(Hits(postings["offset"] + np.int64(block * BLOCK), postings["count"]))
    for hashed, found in _tail_hits(tail, list(hashes)):
        parts[hashes[hashed]].append(found)
    return {term: _join(found) for term, found in parts.items()}


def _join(parts: Sequence[Hits]) -> Hits:
    return Hits(
        np.concatenate([part.ordinals for part in parts]), np.concatenate([part.counts for part in parts])
    )


def _tail_hits(tail: Sequence[StoredTerms], hashes: list[int]) -> Iterator[tuple[int, Hits]]:
    terms, ordinals, counts = join_terms(tail)
    wanted = np.isin(terms, np.array(hashes, dtype=np.int64))
    terms, ordinals, counts = terms[wanted], ordinals[wanted], counts[wanted]
    for hashed in set(terms.tolist()):
        here = terms == hashed
        yield hashed, Hits(ordinals[here], counts[here])


def _load_index(owner: SearchOwner, question: Question) -> Index:
    rows = SearchDocument.objects.filter(owner=owner, ordinal__gte=owner.sealed_ordinal).order_by("ordinal")
    tail = list(rows.values_list("ordinal", "previous", "said_at", "length", "terms", "counts"))
    tail = [row for row in tail if row[0] < owner.next_ordinal]
    return Index(
        columns=_blocks(owner, [row[:4] for row in tail]),
        hits=_hits(owner, question.lookups, [StoredTerms(row[0], row[4], row[5]) for row in tail]),
        document_count=owner.document_count,
        total_length=owner.total_length,
    )


def rank_documents(user_id: UUID, question: Question, limit: int, *, only_matches: bool = False) -> Ranking:
    owner = SearchOwner.objects.filter(user_id=user_id).first()
    if owner is None or not owner.document_count or not (question.words or question.dates):
        return Ranking([], [], 0.0)
    return rank(_load_index(owner, question), question, limit, only_matches=only_matches)


def read_found(user_id: UUID, ordinals: Sequence[int], scores: Sequence[float]) -> list[Found]:
    """In the order given; what lost its source meanwhile is left out."""
    rows = SearchDocument.objects.filter(owner__user_id=user_id, ordinal__in=list(ordinals))
    documents = {row.ordinal: row for row in rows.defer("terms", "counts")}
    messages = _messages(user_id, documents.values())
    entries = _entries(user_id, documents.values())
    found = []
    for ordinal, score in zip(ordinals, scores, strict=True):
        document = documents.get(ordinal)
        if document and document.source_id in messages:
            found.append(_found_message(document, messages[document.source_id], score))
        elif document and document.source_id in entries:
            found.append(_found_entry(document, entries[document.source_id], score))
    return found


def _source_ids(documents: Iterable[SearchDocument], kind: int) -> set[UUID]:
    return {document.source_id for document in documents if document.kind == kind}


def _messages(user_id: UUID, documents: Iterable[SearchDocument]) -> dict[UUID, Message]:
    ids = _source_ids(documents, SearchDocument.Kind.MESSAGE)
    rows = Message.objects.filter(conversation__user_id=user_id, conversation__temporary=False)
    return rows.only("conversation", "branch", "position", "role", "parts", "created_at").in_bulk(list(ids))


def _entries(user_id: UUID, documents: Iterable[SearchDocument]) -> dict[UUID, MemoryEntry]:
    ids = _source_ids(documents, SearchDocument.Kind.ENTRY)
    return MemoryEntry.objects.filter(user_id=user_id).in_bulk(list(ids))


def _found_message(document: SearchDocument, row: Message, score: float) -> Found:
    text = mapping.text_of(row.parts)
    return Found(
        kind="message",
        text=text[document.start : document.end].strip(),
        score=score,
        said_at=row.created_at,
        is_whole=document.start == 0 and document.end >= len(text),
        role=row.role,
        conversation_id=row.conversation_id,
        message_id=row.pk,
        branch_id=row.branch_id,
        position=row.position,
        start=document.start,
    )


def _found_entry(document: SearchDocument, row: MemoryEntry, score: float) -> Found:
    return Found(
        kind="entry",
        text=row.text[document.start : document.end].strip(),
        score=score,
        said_at=row.created_at,
        is_whole=document.start == 0 and document.end >= len(row.text),
        conversation_id=row.conversation_id,
        entry_id=row.pk,
        day=row.day,
        start=document.start,
    )
