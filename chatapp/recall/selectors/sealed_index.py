"""Reads the sealed part of an index from the cache, or from its rows if they changed since."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Sum
from django.db.models.functions import Length

from agents.arrays import np, npt
from chatapp.recall.index_cache import IndexCache
from chatapp.recall.index_format import (
    BLOCK,
    COLUMNS,
    POSTING_BYTES,
    Columns,
    Hits,
    blank_rows,
    join_postings,
    unpack_columns,
)
from chatapp.recall.models import SearchBlock, SearchOwner, SearchPosting

CACHE_BYTES = 96_000_000
TERMS_BYTES = 4_000_000
"""The limit for the cached terms of one index. Above it, they are dropped and read again on demand."""
COUNT_BYTES = 100
# The bytes of a row of `Columns`: 4 + 4 + 2 + 1.
_DOCUMENT_BYTES = 11
# The cache would never drop indexes of size 0.
_EMPTY_BYTES = 1_000


@dataclass(slots=True)
class Sealed:
    """The documents below ordinal `end`, and the terms that were looked up so far, by their hashes."""

    owner_id: int
    edition: UUID
    end: int
    columns: Columns
    _hits: dict[int, Hits] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)
    _terms_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        return _EMPTY_BYTES + len(self.columns) * _DOCUMENT_BYTES + self._terms_bytes

    def hits(self, terms: Collection[int]) -> dict[int, Hits]:
        """Return the hits of each term, without terms that do not occur."""
        if not self.end:
            return {}
        known = {term: found for term in terms if (found := self._hits.get(term)) is not None}
        if len(known) < len(terms):
            read = self._read_hits([term for term in terms if term not in known])
            self._make_room(sum(found.ordinals.nbytes + found.counts.nbytes for found in read.values()))
            self._hits |= read
            known |= read
        return {term: found for term, found in known.items() if len(found.ordinals)}

    def counts(self, terms: Collection[int]) -> dict[int, int]:
        """Return in how many documents each term occurs, without reading the postings."""
        if not self.end:
            return dict.fromkeys(terms, 0)
        known = {term: count for term in terms if (count := self._counts.get(term)) is not None}
        if len(known) < len(terms):
            read = self._read_counts([term for term in terms if term not in known])
            self._make_room(COUNT_BYTES * len(read))
            self._counts |= read
            known |= read
        return known

    def _make_room(self, more_bytes: int) -> None:
        if self._terms_bytes + more_bytes > TERMS_BYTES:
            self._hits, self._counts, self._terms_bytes = {}, {}, 0
        self._terms_bytes += more_bytes
        cache.put(self.owner_id, self)

    def _read_hits(self, terms: Collection[int]) -> dict[int, Hits]:
        rows = SearchPosting.objects.filter(owner=self.owner_id, term__in=terms).order_by("block")
        parts: dict[int, list[tuple[int, bytes | memoryview]]] = defaultdict(list)
        for term, block, entries in rows.values_list("term", "block", "entries"):
            parts[term].append((block, entries))
        # Include terms that do not occur, so that they are not looked up each time.
        return {term: join_postings(parts[term], self.end) for term in terms}

    def _read_counts(self, terms: Collection[int]) -> dict[int, int]:
        rows = SearchPosting.objects.filter(owner=self.owner_id, term__in=terms).values("term")
        sizes = dict(rows.annotate(size=Sum(Length("entries"))).values_list("term", "size"))
        # Only the length is read, because the postings of a common word are long.
        return {term: sizes.get(term, 0) // POSTING_BYTES for term in terms}


cache = IndexCache[Sealed](CACHE_BYTES)


def open_sealed(owner: SearchOwner) -> Sealed:
    """Return the sealed part of the index at the edition of this row."""
    cached = cache.get(owner.pk)
    if cached and (cached.edition, cached.end) == (owner.edition, owner.sealed_ordinal):
        return cached
    sealed = Sealed(owner.pk, owner.edition, owner.sealed_ordinal, unpack_columns(_read_blocks(owner)))
    cache.put(owner.pk, sealed)
    return sealed


def _read_blocks(owner: SearchOwner) -> npt.NDArray[Any]:
    rows = blank_rows(owner.sealed_ordinal)
    # A user with few documents has no block, so that no query is needed.
    if not len(rows):
        return rows
    # A block that was started after the owner was read does not belong to this edition.
    blocks = SearchBlock.objects.filter(owner=owner, number__lt=-(-owner.sealed_ordinal // BLOCK))
    for number, stored in blocks.values_list("number", "columns"):
        first = number * BLOCK
        block = np.frombuffer(stored, COLUMNS)[: len(rows) - first]
        rows[first : first + len(block)] = block
    return rows
