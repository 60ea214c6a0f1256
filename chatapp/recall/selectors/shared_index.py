"""Reads the index of a scope's shared memory. Its ordinals follow those of the user's own index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from agents.arrays import np
from chatapp.recall.index_format import (
    NO_ORDINAL,
    Columns,
    FreshTerms,
    Hits,
    blank_rows,
    join_all_hits,
    unpack_columns,
)
from chatapp.recall.models import SearchDocument, SearchOwner
from chatapp.recall.selectors.newest_index import open_newest
from chatapp.recall.selectors.sealed_index import Sealed, open_sealed


@dataclass(frozen=True, slots=True)
class SharedIndex:
    """The index of a scope. `first` is added to its ordinals; `fresh` has the terms of documents in no block yet."""

    first: int
    scope_id: UUID | None = None
    sealed: Sealed | None = None
    columns: Columns = field(default_factory=lambda: unpack_columns(blank_rows(0)))
    fresh: FreshTerms | None = None
    document_count: int = 0
    total_length: int = 0

    def hits(self, terms: Collection[int]) -> dict[int, Hits]:
        if self.sealed is None or self.fresh is None:
            return {}
        found = join_all_hits(self.sealed.hits(terms), self.fresh.hits(terms))
        return {term: Hits(hits.ordinals + self.first, hits.counts) for term, hits in found.items()}

    def counts(self, terms: Collection[int]) -> Mapping[int, int]:
        """Return in how many documents each term occurs."""
        if self.sealed is None or self.fresh is None:
            return {}
        counts = Counter(self.sealed.counts(terms))
        counts.update({term: len(found.ordinals) for term, found in self.fresh.hits(terms).items()})
        return counts

    def documents(self, ordinals: Sequence[int]) -> list[SearchDocument]:
        """Return rows with `first` added to their ordinals; they must not be saved."""
        if self.sealed is None or not ordinals:
            return []
        wanted = [ordinal - self.first for ordinal in ordinals]
        rows = SearchDocument.objects.filter(owner=self.sealed.owner_id, ordinal__in=wanted)
        # Both columns are long, and only scoring needs them.
        found = list(rows.defer("terms", "counts"))
        for row in found:
            row.ordinal += self.first
        return found


def open_shared(scope_id: UUID | None, first: int) -> SharedIndex:
    owner = SearchOwner.objects.filter(scope=scope_id).first() if scope_id is not None else None
    if owner is None:
        return SharedIndex(first, scope_id)
    sealed = open_sealed(owner)
    newest = open_newest(owner)
    columns = sealed.columns.followed_by(newest.columns)
    return SharedIndex(
        first=first,
        scope_id=scope_id,
        sealed=sealed,
        columns=_shifted(columns, first),
        fresh=newest.terms,
        document_count=owner.document_count,
        total_length=owner.total_length,
    )


def _shifted(columns: Columns, first: int) -> Columns:
    """Return the columns with `first` added to `previous`."""
    shifted = np.where(columns.previous == NO_ORDINAL, NO_ORDINAL, columns.previous + first)
    return replace(columns, previous=shifted.astype(columns.previous.dtype))
