"""The score over what a search loaded. Knows numpy and no database; the constants are `memory.ranking`'s."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
import numpy.typing as npt

from chatapp.search_index import MAX_COUNT, Columns, Counts, Ordinals
from memory.dates import DateSpan
from memory.questions import KIND_WEIGHT, Question, kind_term
from memory.ranking import (
    DATE_BONUS,
    K1,
    LEAST_SHARE,
    LENGTH_BONUS,
    MIN_COVERAGE,
    MIN_COVERAGE_OF_REQUEST,
    NEIGHBOUR_WEIGHTS,
    QUESTION_MALUS,
    SPEAKER_BONUS,
    TIME_BONUS,
    B,
    idf,
)
from memory.terms import QUESTION

_EPOCH = date(1970, 1, 1).toordinal()
NOTHING_LENT: Mapping[str, float] = {}

Scores = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


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

    def idf_of(self, term: str) -> float:
        found = self.hits.get(term)
        return idf(self.document_count, len(found.ordinals) if found else 0)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ordinals best first with their scores. `fits`: the best document has enough of what was asked."""

    ordinals: list[int]
    scores: list[float]
    fits: bool

    def worth_recalling(self) -> tuple[list[int], list[float]]:
        """Ordinals and scores; none where nothing fits what was asked."""
        if not self.fits or not self.scores:
            return [], []
        count = sum(score >= LEAST_SHARE * self.scores[0] for score in self.scores)
        return self.ordinals[:count], self.scores[:count]


def _term_scores(index: Index, term: str) -> Scores:
    found = index.hits[term]
    counts = found.counts.astype(np.float64)
    average = max(1.0, index.total_length / max(1, index.document_count))
    lengths = index.columns["length"][found.ordinals] / average
    return np.asarray(index.idf_of(term) * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths)))


def _text_scores(index: Index, weights: Mapping[str, float]) -> Scores:
    scores = np.zeros(len(index.columns))
    for term in sorted(weights):  # one order of adding, so that two databases give the same sum
        if term in index.hits:
            scores[index.hits[term].ordinals] += weights[term] * _term_scores(index, term)
    return scores


def _coverage(index: Index, question: Question, weights: Mapping[str, float]) -> float:
    wanted = {word: weights[word] * index.idf_of(word) for word in question.telling}
    found = np.zeros(len(index.columns))
    for word, worth in wanted.items():
        if word in index.hits:
            found[index.hits[word].ordinals] += worth
        elif kind_term(word) in index.hits:
            found[index.hits[kind_term(word)].ordinals] += KIND_WEIGHT * worth
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


def _having(index: Index, terms: Iterable[str]) -> Scores:
    """1 for the documents that hold any of the terms."""
    found = np.zeros(len(index.columns))
    for term in terms:
        if term in index.hits:
            found[index.hits[term].ordinals] = 1.0
    return found


def _bonuses(index: Index, question: Question, speakers: Iterable[str]) -> Scores:
    return np.asarray(
        LENGTH_BONUS * np.log1p(index.columns["length"].astype(np.float64))
        - QUESTION_MALUS * _having(index, (QUESTION,))
        + SPEAKER_BONUS * _having(index, speakers)
        + TIME_BONUS * _having(index, question.times)
        + DATE_BONUS * _date_scores(index.columns, question.dates)
    )


def gather_kinds(index: Index, kinds: Mapping[str, Iterable[str]]) -> Index:
    """The same with each kind as a term of its own, which occurs wherever anything of the kind does."""
    gathered = {kind_term(word): _together(index, terms) for word, terms in kinds.items()}
    return replace(index, hits={**index.hits, **gathered})


def _together(index: Index, terms: Iterable[str]) -> Hits:
    counts = np.zeros(len(index.columns), dtype=np.int64)
    for term in terms:
        if term in index.hits:
            counts[index.hits[term].ordinals] += index.hits[term].counts
    ordinals = np.flatnonzero(counts)
    return Hits(ordinals, np.minimum(counts[ordinals], MAX_COUNT).astype(np.uint8))


def speakers_asked_about(index: Index, question: Question) -> dict[str, str]:
    """Of the question's names those that somebody speaks under: the plain term, and the one of what they said."""
    return {term: f"@{name}" for term, name in question.names.items() if f"@{name}" in index.hits}


def rank(
    index: Index,
    question: Question,
    limit: int,
    *,
    only_matches: bool = False,
    lent: Mapping[str, float] = NOTHING_LENT,
    among: Mask | None = None,
) -> Ranking:
    """The best `limit` live documents; ties go to the one said later. `only_matches` leaves out those that merely
    stand beside a match; `lent` are weights of words that are not the question's own; `among` says which may be found.
    """
    speakers = speakers_asked_about(index, question)
    weights = question.weights(speakers)
    text = _text_scores(index, {**lent, **weights})
    near = _spread(text, index.columns["previous"])
    best = float(near.max(initial=0.0))
    scores = near + (best or 1.0) * _bonuses(index, question, speakers.values())
    then = _date_scores(index.columns, question.dates) > 0
    least = MIN_COVERAGE_OF_REQUEST if question.is_request else MIN_COVERAGE
    fits = bool(speakers) or bool(then.any()) or _coverage(index, question, weights) >= least
    relevant = ((text if only_matches else near) > 0) | then
    findable = index.columns["live"] == 1 if among is None else (index.columns["live"] == 1) & among
    scores = np.where(relevant & findable, scores, -np.inf)
    return _best(scores, index.columns["minute"], limit, fits)


def _best(scores: Scores, minutes: npt.NDArray[np.int32], limit: int, fits: bool) -> Ranking:
    count = min(limit, int(np.isfinite(scores).sum()))
    if count == 0:
        return Ranking([], [], False)
    worst = np.partition(scores, len(scores) - count)[len(scores) - count]
    among = np.flatnonzero(scores >= worst)
    order = among[np.lexsort((-among, -minutes[among], -scores[among]))][:count]
    return Ranking(order.tolist(), scores[order].tolist(), fits)
