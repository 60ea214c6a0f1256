"""The bytes of the search index. Knows numpy and no database; the score over them is `search_ranking`'s.

A user's documents have ordinals. `BLOCK` of them share a block: one row of columns, and one row per term with the
documents that contain it. The newest documents are not in blocks yet; they bring their own terms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import snowballstemmer

from memory.questions import QuestionReader
from memory.sentences import Vocabulary
from memory.terms import Analyzer, is_word

BLOCK = 16_384
MAX_COUNT = 255
MAX_LENGTH = 32_767
NO_ORDINAL = -1

COLUMNS = np.dtype([("previous", "<i4"), ("minute", "<i4"), ("length", "<u2"), ("live", "<u2")])
POSTING = np.dtype([("offset", "<u2"), ("count", "u1")])
TERM = np.dtype("<i8")

Columns = npt.NDArray[Any]
Terms = npt.NDArray[np.int64]
Ordinals = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint8]

analyzer = Analyzer(snowballstemmer.stemmer("english").stemWord)
vocabulary = Vocabulary(analyzer)
questions = QuestionReader(analyzer)


@lru_cache(maxsize=200_000)
def hash_term(term: str) -> int:
    """The signed 64 bits a term is known by: the index holds no words."""
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True, slots=True)
class PackedTerms:
    """The terms of one document as stored, and its length in words."""

    terms: bytes
    counts: bytes
    length: int


def pack_terms(text: str) -> PackedTerms:
    found = analyzer.document_terms(text)
    hashed = {hash_term(term): min(count, MAX_COUNT) for term, count in found.items()}
    ordered = sorted(hashed)
    length = sum(count for term, count in found.items() if is_word(term))
    return PackedTerms(
        terms=np.array(ordered, dtype=TERM).tobytes(),
        counts=bytes(hashed[term] for term in ordered),
        length=min(length, MAX_LENGTH),
    )


def minute_of(moment: datetime) -> int:
    return int(moment.timestamp() // 60)


# --- Postings: records in ascending order of offset, so that later documents are simply appended --------


def read_postings(entries: bytes | memoryview) -> npt.NDArray[Any]:
    return np.frombuffer(entries, POSTING)


def drop_postings(entries: bytes | memoryview, gone: npt.NDArray[Any]) -> bytes:
    postings = read_postings(entries)
    return postings[~np.isin(postings["offset"], gone)].tobytes()


@dataclass(frozen=True, slots=True)
class StoredTerms:
    """A document's terms as they lie in its row."""

    ordinal: int
    terms: bytes | memoryview
    counts: bytes | memoryview


def join_terms(documents: Sequence[StoredTerms]) -> tuple[Terms, Ordinals, Counts]:
    """Three columns of equal length: term, ordinal, count."""
    terms = np.frombuffer(b"".join(document.terms for document in documents), TERM)
    counts = np.frombuffer(b"".join(document.counts for document in documents), "u1")
    sizes = [len(document.counts) for document in documents]
    ordinals = np.repeat(np.array([document.ordinal for document in documents], dtype=np.int64), sizes)
    return terms, ordinals, counts


def group_by_term(documents: Sequence[StoredTerms]) -> dict[int, bytes]:
    """The postings each term gains; the documents are of one block, in ascending order."""
    terms, ordinals, counts = join_terms(documents)
    order = np.argsort(terms, kind="stable")
    terms = terms[order]
    postings = np.zeros(len(terms), POSTING)
    postings["offset"], postings["count"] = ordinals[order] % BLOCK, counts[order]
    starts = (
        np.flatnonzero(np.append(True, terms[1:] != terms[:-1])) if len(terms) else np.array([], np.int64)
    )
    ends = np.append(starts[1:], len(terms))
    return {
        int(terms[start]): postings[start:end].tobytes() for start, end in zip(starts, ends, strict=False)
    }
