"""Splits texts into terms: the analyzer and its users, and the stored terms of one document."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from agents.arrays import np
from chatapp.operations.lru_cache import LruCache
from memory.questions import QuestionReader
from memory.sentences import Vocabulary
from memory.terms import Analyzer, is_word

ANALYSIS_VERSION = 8
"""Raise it when the same text gives other terms or claims than before: workers then analyse every index again, once.
Version 1 knew English stems only, versions 2 to 4 fewer claims, versions 5 and 6 took past ones for changes, 7 took
quoted ones for the speaker's."""
TERM = "<i8"
"""As numpy names a type; it is imported when it is used."""
# What one byte of a posting holds.
MAX_COUNT = 255
# The most that PostgreSQL stores in a PositiveSmallIntegerField.
MAX_LENGTH = 32_767


# Shared by all threads. A stemmer is not safe for that: each thread has its own.
analyzer = Analyzer()
vocabulary = Vocabulary(analyzer)
questions = QuestionReader(analyzer)


@lru_cache(maxsize=200_000)
def hash_term(term: str) -> int:
    """Return the signed 64 bits that stand for a term, because the index stores no words."""
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # Signed, because databases have no other whole number of 64 bits.
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
    """Return what stands for a text in memory: what was forgotten is not kept there."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def pack_terms(text: str) -> PackedTerms:
    """Return the terms of one document, in the order of their hashes. What is asked for again soon, by a search and
    then by the worker that indexes, is known by the hash of its text."""
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
