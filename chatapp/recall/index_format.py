"""The byte format of the search index, without a database. `ranking` scores what is read here.

Each document of a user has an ordinal. Every `BLOCK` of them form a block: one row of columns, and one row per term
with the documents that contain it. The newest documents are in no block yet and bring their own terms.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from agents.arrays import np, npt
from chatapp.recall.analysis import TERM

# An offset has two bytes, hence 65,536 at most; the columns of a block are written again with each seal.
BLOCK = 16_384
NO_ORDINAL = -1

# By the names that numpy gives types, so that it is not imported here.
COLUMNS = [("previous", "<i4"), ("minute", "<i4"), ("length", "<u2"), ("live", "<u2")]
POSTING = [("offset", "<u2"), ("count", "u1")]
POSTING_BYTES = 3
# In the year 6053. Imports name later ones, such as 9999-12-31.
MAX_MINUTE = 2**31 - 1

Terms: TypeAlias = "npt.NDArray[np.int64]"
Ordinals: TypeAlias = "npt.NDArray[np.int64]"
Counts: TypeAlias = "npt.NDArray[np.uint8]"


def minute_of(moment: datetime) -> int:
    """Return the minute since 1970, or the nearest one that fits the column."""
    return min(max(int(moment.timestamp() // 60), -MAX_MINUTE), MAX_MINUTE)


# --- Columns --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns:
    """What scoring needs of each document, by ordinal. `previous` is the document said just before, or NO_ORDINAL."""

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
    """Return rows of columns, as stored, of documents that do not exist."""
    rows = np.zeros(count, COLUMNS)
    rows["previous"] = NO_ORDINAL
    return rows


def unpack_columns(rows: npt.NDArray[Any]) -> Columns:
    names = ("previous", "minute", "length")
    # Copied out of the records: NumPy calculates faster with numbers that lie side by side.
    previous, minute, length = (np.ascontiguousarray(rows[name]) for name in names)
    return Columns(previous, minute, length, rows["live"] == 1)


# --- Postings: records in ascending order of offset, so that later documents are simply appended --------


def read_postings(entries: bytes | memoryview) -> npt.NDArray[Any]:
    return np.frombuffer(entries, POSTING)


def drop_postings(entries: bytes | memoryview, gone: npt.NDArray[Any]) -> bytes:
    postings = read_postings(entries)
    return postings[~np.isin(postings["offset"], gone)].tobytes()


def change_postings(entries: bytes | memoryview, counts: Mapping[int, int]) -> bytes:
    """Return the postings with these counts at these offsets; a count of 0 removes."""
    postings = read_postings(entries)
    left = postings[~np.isin(postings["offset"], list(counts))]
    added = np.array([(offset, count) for offset, count in counts.items() if count], dtype=POSTING)
    changed = np.concatenate([left, added])
    return changed[np.argsort(changed["offset"], kind="stable")].tobytes()


@dataclass(frozen=True, slots=True)
class Hits:
    """Where a term occurs, over all of a user's documents, in ascending order."""

    ordinals: Ordinals
    counts: Counts


def join_postings(parts: Sequence[tuple[int, bytes | memoryview]], end: int) -> Hits:
    """Return the documents of one term, from `(block, entries)` in ascending order, below ordinal `end`."""
    postings = np.frombuffer(b"".join(entries for _, entries in parts), POSTING)
    sizes = [len(entries) // POSTING_BYTES for _, entries in parts]
    starts = np.repeat(np.array([block * BLOCK for block, _ in parts], dtype=np.int64), sizes)
    ordinals = starts + postings["offset"]
    # Documents from `end` on were sealed after the owner was read: its columns do not have them.
    count = int(np.searchsorted(ordinals, end))
    # A view would keep the bytes of all postings alive in the cache, which does not count them.
    return Hits(ordinals[:count], postings["count"][:count].copy())


def join_hits(first: Hits, second: Hits) -> Hits:
    """Return both; `second` has the later documents."""
    return Hits(
        np.concatenate([first.ordinals, second.ordinals]), np.concatenate([first.counts, second.counts])
    )


def join_all_hits(first: Mapping[int, Hits], second: Mapping[int, Hits]) -> dict[int, Hits]:
    """Return the hits of both for each term; `second` has the later documents."""
    both = {term: join_hits(first[term], second[term]) for term in first.keys() & second.keys()}
    return {**first, **second, **both}


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """The terms of a document as its row has them."""

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
    """The terms of documents that are in no block yet: columns in the order of the terms' hashes."""

    terms: Terms
    ordinals: Ordinals
    counts: Counts

    def hits(self, terms: Collection[int]) -> dict[int, Hits]:
        """Return the documents of each term that occurs in any."""
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
    """Return the new postings of each term. All documents are of one block, in ascending order."""
    found = sort_terms(documents)
    terms = found.terms
    postings = np.zeros(len(terms), POSTING)
    postings["offset"], postings["count"] = found.ordinals % BLOCK, found.counts
    starts = (
        # Not np.unique, which imports numpy.ma where it is first called: here the lock is held.
        np.flatnonzero(np.append(True, terms[1:] != terms[:-1])) if len(terms) else np.array([], np.int64)
    )
    ends = np.append(starts[1:], len(terms))
    return {
        int(terms[start]): postings[start:end].tobytes() for start, end in zip(starts, ends, strict=False)
    }
