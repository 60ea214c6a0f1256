"""The byte format of the search index, without database access. `ranking` scores the decoded values.

Each document of a user has an ordinal. `BLOCK` consecutive documents form a block: one row of columns, and one row per
term with the documents that contain it. The newest documents are in no block yet; their terms are in their own rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from agents.arrays import np, npt
from chatapp.recall.analysis import TERM

# At most 65,536, because an offset has two bytes. Each seal writes all columns of its block again.
BLOCK = 16_384
NO_ORDINAL = -1

# Names instead of NumPy types, so that importing this module does not load NumPy.
COLUMNS = [("previous", "<i4"), ("minute", "<i4"), ("length", "<u2"), ("live", "<u2")]
POSTING = [("offset", "<u2"), ("count", "u1")]
POSTING_BYTES = 3
# In the year 6053. Imports contain later times, e.g. 9999-12-31.
MAX_MINUTE = 2**31 - 1

Terms: TypeAlias = "npt.NDArray[np.int64]"
Ordinals: TypeAlias = "npt.NDArray[np.int64]"
Counts: TypeAlias = "npt.NDArray[np.uint8]"


def minute_of(moment: datetime) -> int:
    """Return the minute since 1970, clamped to the range of the column."""
    return min(max(int(moment.timestamp() // 60), -MAX_MINUTE), MAX_MINUTE)


# --- Columns --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns:
    """The data that scoring needs, by ordinal. `previous` is the document said just before, or NO_ORDINAL."""

    previous: npt.NDArray[np.int32]
    minute: npt.NDArray[np.int32]
    length: npt.NDArray[np.uint16]
    live: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.previous)

    def followed_by(self, more: Columns) -> Columns:
        return Columns(
            np.concatenate([self.previous, more.previous]),
            np.concatenate([self.minute, more.minute]),
            np.concatenate([self.length, more.length]),
            np.concatenate([self.live, more.live]),
        )


def blank_rows(count: int) -> npt.NDArray[Any]:
    """Return stored rows that represent missing documents."""
    rows = np.zeros(count, COLUMNS)
    rows["previous"] = NO_ORDINAL
    return rows


def unpack_columns(rows: npt.NDArray[Any]) -> Columns:
    names = ("previous", "minute", "length")
    # Copy the columns out of the records, because NumPy is faster on contiguous arrays.
    previous, minute, length = (np.ascontiguousarray(rows[name]) for name in names)
    return Columns(previous, minute, length, rows["live"] == 1)


# --- Postings: records sorted by offset, so that later documents are appended ---------------------------


def read_postings(entries: bytes | memoryview) -> npt.NDArray[Any]:
    return np.frombuffer(entries, POSTING)


def drop_postings(entries: bytes | memoryview, gone: npt.NDArray[Any]) -> bytes:
    postings = read_postings(entries)
    return postings[~np.isin(postings["offset"], gone)].tobytes()


def change_postings(entries: bytes | memoryview, counts: Mapping[int, int]) -> bytes:
    """Return the postings with new counts by offset. A count of 0 removes the posting."""
    postings = read_postings(entries)
    left = postings[~np.isin(postings["offset"], list(counts))]
    added = np.array([(offset, count) for offset, count in counts.items() if count], dtype=POSTING)
    changed = np.concatenate([left, added])
    return changed[np.argsort(changed["offset"], kind="stable")].tobytes()


@dataclass(frozen=True, slots=True)
class Hits:
    """The documents of a user that contain a term, in ascending order, and how often each does."""

    ordinals: Ordinals
    counts: Counts


def join_postings(parts: Sequence[tuple[int, bytes | memoryview]], end: int) -> Hits:
    """Return the documents of one term below ordinal `end`, from `(block, entries)` in ascending order."""
    postings = np.frombuffer(b"".join(entries for _, entries in parts), POSTING)
    sizes = [len(entries) // POSTING_BYTES for _, entries in parts]
    starts = np.repeat(np.array([block * BLOCK for block, _ in parts], dtype=np.int64), sizes)
    ordinals = starts + postings["offset"]
    # Documents from `end` on were sealed after the owner was read, whose columns lack them.
    count = int(np.searchsorted(ordinals, end))
    # Copy: a view would keep the bytes of all postings in memory, and the cache would not count them.
    return Hits(ordinals[:count], postings["count"][:count].copy())


def join_hits(first: Hits, second: Hits) -> Hits:
    """Concatenate the hits; `second` has the later documents."""
    return Hits(
        np.concatenate([first.ordinals, second.ordinals]), np.concatenate([first.counts, second.counts])
    )


def join_all_hits(first: Mapping[int, Hits], second: Mapping[int, Hits]) -> dict[int, Hits]:
    """Concatenate the hits of each term; `second` has the later documents."""
    both = {term: join_hits(first[term], second[term]) for term in first.keys() & second.keys()}
    return {**first, **second, **both}


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """The terms of a document as stored in its row."""

    ordinal: int
    terms: bytes | memoryview
    counts: bytes | memoryview


def count_terms(terms: bytes | memoryview, counts: bytes | memoryview) -> dict[int, int]:
    """Return how often each term occurs in one document."""
    return dict(zip(np.frombuffer(terms, TERM).tolist(), bytes(counts), strict=True))


def join_terms(documents: Sequence[StoredTerms]) -> tuple[Terms, Ordinals, Counts]:
    """Return three columns of equal length: term, ordinal, count."""
    terms = np.frombuffer(b"".join(document.terms for document in documents), TERM)
    counts = np.frombuffer(b"".join(document.counts for document in documents), "u1")
    sizes = [len(document.counts) for document in documents]
    ordinals = np.repeat(np.array([document.ordinal for document in documents], dtype=np.int64), sizes)
    return terms, ordinals, counts


@dataclass(frozen=True, slots=True)
class FreshTerms:
    """The terms of documents that are in no block yet, as columns sorted by term hash."""

    terms: Terms
    ordinals: Ordinals
    counts: Counts

    def hits(self, terms: Collection[int]) -> dict[int, Hits]:
        """Return the hits of each term, without terms that do not occur."""
        wanted = np.array(list(terms), dtype=np.int64)
        spans = zip(
            wanted.tolist(),
            np.searchsorted(self.terms, wanted, "left").tolist(),
            np.searchsorted(self.terms, wanted, "right").tolist(),
            strict=True,
        )
        return {
            term: Hits(self.ordinals[start:end], self.counts[start:end])
            for term, start, end in spans
            if end > start
        }


def sort_terms(documents: Sequence[StoredTerms]) -> FreshTerms:
    terms, ordinals, counts = join_terms(documents)
    order = np.argsort(terms, kind="stable")
    return FreshTerms(terms[order], ordinals[order], counts[order])


def group_by_term(documents: Sequence[StoredTerms]) -> dict[int, bytes]:
    """Return the new postings of each term. All documents belong to one block and are in ascending order."""
    found = sort_terms(documents)
    terms = found.terms
    postings = np.zeros(len(terms), POSTING)
    postings["offset"], postings["count"] = found.ordinals % BLOCK, found.counts
    starts = (
        # Not np.unique, because its first call imports numpy.ma while the lock is held.
        np.flatnonzero(np.append(True, terms[1:] != terms[:-1])) if len(terms) else np.array([], np.int64)
    )
    ends = np.append(starts[1:], len(terms))
    return {
        int(terms[start]): postings[start:end].tobytes() for start, end in zip(starts, ends, strict=False)
    }
