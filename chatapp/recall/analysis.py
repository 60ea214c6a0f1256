"""Splits texts into terms: the shared analyzer, what is built on it, and the stored terms of one document."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from agents.arrays import np
from chatapp.operations.caching.lru_cache import LruCache
from memory.language.sentences import Vocabulary
from memory.language.terms import Analyzer, is_word
from memory.recall.questions import QuestionReader

ANALYSIS_VERSION = 8
"""Raise it if the same text gives other terms or claims than before: workers then analyse every index again, once."""
TERM = "<i8"
"""The NumPy name of the type. NumPy is imported on first use."""
# The maximum of one byte, as stored in a posting.
MAX_COUNT = 255
# The maximum of a PositiveSmallIntegerField in PostgreSQL.
MAX_LENGTH = 32_767


# Shared by all threads. Stemmers are not thread-safe: each thread has its own.
analyzer = Analyzer()
vocabulary = Vocabulary(analyzer)
questions = QuestionReader(analyzer)


@lru_cache(maxsize=200_000)
def hash_term(term: str) -> int:
    """Return the signed 64-bit hash of a term. The index stores no words."""
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # Signed, because databases have no unsigned 64-bit integers.
    return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True, slots=True)
class PackedTerms:
    """The terms of one document as stored, and its length in words."""

    terms: bytes
    counts: bytes
    length: int


KNOWN_TEXTS = 4_000
_known = LruCache[bytes, PackedTerms](KNOWN_TEXTS)


def hash_text(text: str) -> bytes:
    """Return a cache key for a text. The text itself must not stay in memory after it was forgotten."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def pack_terms(text: str) -> PackedTerms:
    """Return the terms of one document, sorted by hash. Results are cached by a hash of the text, because a search and
    then the indexing worker analyse the same text."""
    digest = hash_text(text)
    known = _known.get(digest)
    if known is None:
        known = _known.put(digest, _pack_terms(text))
    return known


def _pack_terms(text: str) -> PackedTerms:
    found = analyzer.document_terms(text)
    hashed = {hash_term(term): min(count, MAX_COUNT) for term, count in found.items()}
    ordered = sorted(hashed)
    length = sum(count for term, count in found.items() if is_word(term))
    return PackedTerms(
        terms=np.array(ordered, dtype=TERM).tobytes(),
        counts=bytes(hashed[term] for term in ordered),
        length=min(length, MAX_LENGTH),
    )
