"""Reads the documents of an index that are in no block yet, from the cache and from rows added since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from chatapp.conversations.message_values import read_moment
from chatapp.operations.database.statements import execute
from chatapp.recall.index_cache import IndexCache
from chatapp.recall.index_format import (
    Columns,
    FreshTerms,
    StoredTerms,
    blank_rows,
    minute_of,
    sort_terms,
    unpack_columns,
)
from chatapp.recall.models import SearchOwner

CACHE_BYTES = 24_000_000
DOCUMENT_BYTES = 300
"""The memory of one document besides its terms."""

_ROWS = """
SELECT ordinal, previous, CAST(said_at AS text), length, terms, counts FROM chatapp_searchdocument
WHERE owner_id = %s AND ordinal >= %s AND ordinal < %s ORDER BY ordinal
"""


class NewestDocument(NamedTuple):
    """The columns of a stored document that a search needs."""

    ordinal: int
    previous: int
    said_at: datetime
    length: int
    terms: bytes
    counts: bytes


@dataclass(frozen=True, slots=True)
class UnsealedDocuments:
    """The documents from ordinal `first` on, below `end`, at one edition of the index."""

    edition: UUID
    first: int
    end: int
    documents: tuple[NewestDocument, ...]
    columns: Columns
    terms: FreshTerms
    size_bytes: int


_cache = IndexCache[UnsealedDocuments](CACHE_BYTES)


def open_newest(owner: SearchOwner) -> UnsealedDocuments:
    """Return the newest documents at the edition of this row. Adding documents keeps the edition; removing or changing
    one changes it."""
    first, end = owner.sealed_ordinal, owner.next_ordinal
    known = _cache.get(owner.pk)
    # A cached value that reaches further was read by another thread, after this row.
    if known is None or (known.edition, known.first) != (owner.edition, first) or known.end > end:
        known = None
    if known is not None and known.end == end:
        return known
    documents = (*(known.documents if known else ()), *_read(owner.pk, known.end if known else first, end))
    rows = blank_rows(end - first)
    for row in documents:
        rows[row.ordinal - first] = (row.previous, minute_of(row.said_at), row.length, 1)
    terms = sort_terms([StoredTerms(row.ordinal, row.terms, row.counts) for row in documents])
    # Per term of a document: eight bytes in the row, eight in `terms`, and eight for the ordinal there.
    size_bytes = sum(DOCUMENT_BYTES + 3 * len(row.terms) for row in documents)
    newest = UnsealedDocuments(owner.edition, first, end, documents, unpack_columns(rows), terms, size_bytes)
    if not connection.in_atomic_block:  # after a rollback, ordinals are assigned again
        _cache.put(owner.pk, newest)
    return newest


def _read(owner_id: int, first: int, end: int) -> list[NewestDocument]:
    rows = execute(_ROWS, owner_id, first, end).fetchall() if first < end else []
    return [
        NewestDocument(ordinal, previous, read_moment(said_at), length, bytes(terms), bytes(counts))
        for ordinal, previous, said_at, length, terms, counts in rows
    ]
