"""The bytes of the search index, and the score over them. Knows numpy and no database.

A user's documents have ordinals. `BLOCK` of them share a block: one row of columns, and one row per term with the
documents that contain it. The newest documents are not in blocks yet; they bring their own terms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import snowballstemmer

from memory.dates import DateSpan
from memory.ranking import (
    DATE_BONUS,
    K1,
    LENGTH_BONUS,
    MIN_COVERAGE,
    NEIGHBOUR_WEIGHTS,
    QUESTION_MALUS,
    SPEAKER_BONUS,
    B,
    Question,
    idf,
)
from memory.sentences import Vocabulary
from memory.terms import QUESTION, Analyzer, is_word

BLOCK = 16_384
MAX_COUNT = 255
MAX_LENGTH = 32_767
NO_ORDINAL = -1
_EPOCH = date(1970, 1, 1).toordinal()

COLUMNS = np.dtype([("previous", "<i4"), ("minute", "<i4"), ("length", "<u2"), ("live", "<u2")])
POSTING = np.dtype([("offset", "<u2"), ("count", "u1")])
TERM = np.dtype("<i8")

Columns = npt.NDArray[Any]
Terms = npt.NDArray[np.int64]
Ordinals = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint8]
Scores = npt.NDArray[np.float64]

analyzer = Analyzer(snowballstemmer.stemmer("english").stemWord)
vocabulary = Vocabulary(analyzer)


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


# --- The score ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hits:
    """Where a term occurs, over all of a user's documents."""

    ordinals: Ordinals
    counts: Counts


@dataclass(frozen=True, slots=True)
class Index:
    """What one search loads: a row of `columns` per ordinal, and the postings it asked for, by term."""

    columns: Columns
    hits: Mapping[str, Hits]
    document_count: int
    total_length: int

    def share(self, term: str) -> float:
        found = self.hits.get(term)
        return idf(self.document_count, len(found.ordinals) if found else 0)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ordinals best first with their scores. `coverage` is the best document's share of what was asked."""

    ordinals: list[int]
    scores: list[float]
    coverage: float

    @property
    def fits(self) -> bool:
        return self.coverage >= MIN_COVERAGE


def _term_scores(index: Index, term: str) -> Scores:
    found = index.hits[term]
    counts = found.counts.astype(np.float64)
    average = max(1.0, index.total_length / max(1, index.document_count))
    lengths = index.columns["length"][found.ordinals] / average
    return np.asarray(index.share(term) * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths)))


def _text_scores(index: Index, weights: Mapping[str, float]) -> Scores:
    scores = np.zeros(len(index.columns))
    for term in sorted(weights):  # one order of adding, so that two databases give the same sum
        if term in index.hits:
            scores[index.hits[term].ordinals] += weights[term] * _term_scores(index, term)
    return scores


def _coverage(index: Index, question: Question, weights: Mapping[str, float]) -> float:
    wanted = {word: weights[word] * index.share(word) for word in question.words}
    found = np.zeros(len(index.columns))
    for word, worth in wanted.items():
        if word in index.hits:
            found[index.hits[word].ordinals] += worth
    total = sum(wanted.values())
    return float(found.max() / total) if total and len(found) else 0.0


def _spread(scores: Scores, previous: npt.NDArray[np.int32]) -> Scores:
    """Adds the neighbours' scores, following who came before whom; the last cell stands for nobody."""
    size = len(scores)
    nobody = size
    padded = np.append(scores, 0.0)
    before = np.append(np.where(previous < 0, nobody, previous), nobody)
    after = np.full(size + 1, nobody)
    after[before[:-1]] = np.arange(size)
    after[nobody] = nobody
    result = scores.copy()
    for chain in (before, after):
        neighbour = chain
        for weight in NEIGHBOUR_WEIGHTS:
            result += weight * padded[neighbour[:-1]]
            neighbour = chain[neighbour]
    return result


def _date_scores(columns: Columns, spans: Sequence[DateSpan]) -> Scores:
    days = columns["minute"] // 1440
    scores = np.zeros(len(columns))
    for span in spans:
        inside = (days >= span.first.toordinal() - _EPOCH) & (days <= span.last.toordinal() - _EPOCH)
        scores = np.maximum(scores, span.weight * inside)
    return scores


def _bonuses(index: Index, question: Question, speakers: Sequence[str]) -> Scores:
    bonus = LENGTH_BONUS * np.log1p(index.columns["length"].astype(np.float64))
    if QUESTION in index.hits:
        bonus[index.hits[QUESTION].ordinals] -= QUESTION_MALUS
    said_by = np.zeros(len(bonus))
    for speaker in speakers:
        said_by[index.hits[speaker].ordinals] = 1.0
    return bonus + SPEAKER_BONUS * said_by + DATE_BONUS * _date_scores(index.columns, question.dates)


def rank(index: Index, question: Question, limit: int, *, only_matches: bool = False) -> Ranking:
    """The best `limit` live documents; ties go to the one said later. `only_matches` leaves out those that merely
    stand beside a match."""
    names = {term: f"@{name}" for term, name in question.names.items() if f"@{name}" in index.hits}
    weights = question.weights(names)
    text = _text_scores(index, weights)
    coverage = 1.0 if question.dates else _coverage(index, question, weights)
    near = _spread(text, index.columns["previous"])
    best = float(near.max(initial=0.0))
    scores = near + (best or 1.0) * _bonuses(index, question, sorted(names.values()))
    relevant = ((text if only_matches else near) > 0) | (_date_scores(index.columns, question.dates) > 0)
    scores = np.where(relevant & (index.columns["live"] == 1), scores, -np.inf)
    return _best(scores, index.columns["minute"], limit, coverage)


def _best(scores: Scores, minutes: npt.NDArray[np.int32], limit: int, coverage: float) -> Ranking:
    count = min(limit, int(np.isfinite(scores).sum()))
    if count == 0:
        return Ranking([], [], 0.0)
    worst = np.partition(scores, len(scores) - count)[len(scores) - count]
    among = np.flatnonzero(scores >= worst)
    order = among[np.lexsort((-among, -minutes[among], -scores[among]))][:count]
    return Ranking(order.tolist(), scores[order].tolist(), coverage)
