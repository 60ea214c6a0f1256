"""Scores the documents that a search loaded, without database access. The constants are in `memory.recall.ranking`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from functools import cache
from typing import TypeAlias

from agents.arrays import np, npt
from chatapp.recall.analysis import MAX_COUNT, MAX_LENGTH
from chatapp.recall.index_format import Columns, Hits, Ordinals
from memory.language.terms import ASKS, QUESTION
from memory.recall.date_spans import DateSpan
from memory.recall.questions import Question, is_short_number
from memory.recall.ranking import (
    ANSWER_WEIGHT,
    ASKED_WEIGHT,
    CLEAR_EVIDENCE,
    DATE_BONUS,
    DAY_BONUS,
    K1,
    LEAST_SHARE,
    LEAST_WORDS,
    LENGTH_BONUS,
    NAME_RARITY,
    NEIGHBOUR_WEIGHTS,
    PLENTY,
    QUESTION_MALUS,
    SPEAKER_BONUS,
    TIME_BONUS,
    B,
    idf,
)

_EPOCH = date(1970, 1, 1).toordinal()
DAY_MINUTES = 1440
GROUP = 16

Scores: TypeAlias = "npt.NDArray[np.float64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"
Days: TypeAlias = "npt.NDArray[np.int64]"
"""Ordinals of days, as in `date.toordinal`."""


@dataclass(frozen=True, slots=True)
class Index:
    """The data that one search loaded: a row of `columns` per ordinal, and the hits of its terms."""

    columns: Columns
    hits: Mapping[str, Hits]
    document_count: int
    total_length: int

    def idf_of(self, term: str) -> float:
        found = self.hits.get(term)
        return idf(self.document_count, len(found.ordinals) if found else 0)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ordinals with their scores, best first. `evidence` says from 0 to 1 how strongly the question's words support the
    best document, `needed` which share of its room the question needs."""

    ordinals: list[int]
    scores: list[float]
    evidence: float
    needed: float = 1.0

    @property
    def is_clear(self) -> bool:
        return self.evidence >= CLEAR_EVIDENCE

    def worth_recalling(self, least: int) -> dict[int, float]:
        """Return scores by ordinal, without those far below the best, but always the first `least` ones."""
        count = sum(score >= LEAST_SHARE * self.scores[0] for score in self.scores)
        return dict(list(zip(self.ordinals, self.scores, strict=True))[: max(count, least)])


NO_RANKING = Ranking([], [], 0.0)


def score_words(index: Index, weights: Mapping[str, float]) -> Scores:
    """Return the BM25 score of each document."""
    scores = np.zeros(len(index.columns))
    average = max(1.0, index.total_length / max(1, index.document_count))
    for term in sorted(weights):  # a fixed order, so that all databases give the same sum
        if (found := index.hits.get(term)) is not None:
            counts = found.counts.astype(np.float64)
            lengths = index.columns.length[found.ordinals] / average
            saturated = counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths))
            scores[found.ordinals] += weights[term] * index.idf_of(term) * saturated
    return scores


def _evidence(
    index: Index,
    question: Question,
    weights: Mapping[str, float],
    findable: Mask,
    *,
    is_alone: bool = False,
) -> float:
    """Return the share of the question's subject words, weighted by rarity, that the best findable document and its
    neighbours contain. `is_alone`: that document alone, without words that only name a conversation.

    A word that was never said counts like a word said once, because unseen character pairs and word forms are common.
    In a long history, common words alone are no evidence, however many match, and neither are short numbers, which
    occur everywhere. A rare name that was said is clear evidence by itself.
    """
    about = question.telling or tuple(question.words)
    if is_alone:
        about = tuple(word for word in about if word not in question.naming)
    worth = {word: weights[word] * index.idf_of(word) for word in about}
    heaviest = max((weights[word] for word in worth), default=1.0)
    most = heaviest * idf(index.document_count, 1)
    said = [word for word in worth if word in index.hits and findable[index.hits[word].ordinals].any()]
    if not is_alone and any(worth[word] >= NAME_RARITY * most for word in said if word in question.proper):
        return 1.0
    found = np.zeros(len(index.columns))
    for word in said:
        if is_short_number(word):
            continue
        ordinals = index.hits[word].ordinals
        if question.is_remark:
            ordinals = ordinals[index.columns.length[ordinals] >= LEAST_WORDS]
        found[ordinals if is_alone else _with_beside(index, ordinals)] += worth[word]
    total = sum(min(each, most) for each in worth.values())
    best = float(found[findable].max(initial=0.0))
    return (best / total) * min(1.0, best / most) if total else 0.0


def _with_beside(index: Index, ordinals: Ordinals) -> Mask:
    """Return these documents, and those said directly before and after each."""
    previous = index.columns.previous
    inside = np.zeros(len(index.columns), dtype=np.bool_)
    inside[ordinals] = True
    # -1 means none, but would index the last row.
    behind = inside[previous] & (previous >= 0)
    before = previous[ordinals]
    inside[before[before >= 0]] = True
    return inside | behind


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which document was said 1, 2, 3, 4 turns before which. Nearly always it is the row that many above. `exceptions`
    are, for each distance, the rows for which it is not; `other_pairs` are their (later, earlier) documents."""

    exceptions: tuple[Ordinals, ...]
    other_pairs: tuple[tuple[Ordinals, Ordinals], ...]


def find_neighbours(previous: npt.NDArray[np.int32]) -> Neighbours:
    follows = previous == np.arange(-1, len(previous) - 1)
    # The first row has no row above it, but its -1 (none) looks like the number of one.
    follows[:1] = False
    above = [follows]
    for _ in NEIGHBOUR_WEIGHTS[1:]:
        above.append(follows & np.append(False, above[-1][:-1])[: len(follows)])
    later = np.flatnonzero(~above[-1])
    before, other_pairs = later, []
    for is_above in above:
        before = np.where(before < 0, -1, previous[before])
        others = (before >= 0) & ~is_above[later]
        other_pairs.append((later[others], before[others]))
    exceptions = tuple(np.flatnonzero(~is_above[at:]) for at, is_above in enumerate(above, start=1))
    return Neighbours(exceptions, tuple(other_pairs))


def _spread(scores: Scores, asks: Mask, neighbours: Neighbours) -> Scores:
    """Return the scores plus a share of the neighbours' scores. A question gives a larger share to its answer.

    At each distance, add the document before first, then the one after, so that sums do not depend on the row order.
    """
    result = scores.copy()
    pairs = zip(NEIGHBOUR_WEIGHTS, neighbours.exceptions, neighbours.other_pairs, strict=True)
    for distance, (weight, exceptions, (later, earlier)) in enumerate(pairs, start=1):
        onward = back = weight * scores
        if distance == 1:
            onward = np.where(asks, ANSWER_WEIGHT, weight) * scores
            back = np.where(asks, ASKED_WEIGHT, weight) * scores
        # Adding slices is many times faster than indexing rows, and nearly all rows follow the one above.
        result[distance:] += _without(onward[:-distance], exceptions)
        result[later] += onward[earlier]
        result[:-distance] += _without(back[distance:], exceptions)
        # Each document has one successor at most. If a row occurred twice, NumPy would add only one value.
        result[earlier] += back[later]
    return result


def _without(scores: Scores, rows: Ordinals) -> Scores:
    others = scores.copy()
    others[rows] = 0.0
    return others


def _days_in(zone: tzinfo, minutes: npt.NDArray[np.int32]) -> Days:
    """Return the day ordinal of each minute since 1970. The zone's offset is read once a day: on a day when clocks
    change, some hours may count to the neighbouring day."""
    days = minutes // DAY_MINUTES + _EPOCH
    known, at = np.unique(days, return_inverse=True)
    offsets = [zone.utcoffset(datetime.fromordinal(int(day))) or timedelta() for day in known]
    shifts = np.array([offset // timedelta(minutes=1) for offset in offsets], dtype=np.int64)
    local = (minutes + shifts[at]) // DAY_MINUTES + _EPOCH
    days_there: Days = np.clip(local, date.min.toordinal(), date.max.toordinal())
    return days_there


def _date_scores(days: Days, spans: Sequence[DateSpan]) -> Scores:
    scores = np.zeros(len(days))
    for span in spans:
        inside = (days >= span.first.toordinal()) & (days <= span.last.toordinal())
        scores = np.maximum(scores, span.weight * inside)
    return scores


def _having(index: Index, terms: Iterable[str]) -> Mask:
    """Return which documents contain any of the terms."""
    found = np.zeros(len(index.columns), dtype=np.bool_)
    for term in terms:
        if term in index.hits:
            found[index.hits[term].ordinals] = True
    return found


# Computed on first use, so that an idle process does not load NumPy, which takes 16 MB.
@cache
def _length_bonuses() -> Scores:
    """Return the bonus of a document by its length."""
    return LENGTH_BONUS * np.log1p(np.arange(MAX_LENGTH + 1, dtype=np.float64))


def _bonuses(index: Index, question: Question, speakers: Iterable[str]) -> Scores:
    bonuses = _length_bonuses()[index.columns.length]
    bonuses[_having(index, (QUESTION,))] -= QUESTION_MALUS
    bonuses[_having(index, speakers)] += SPEAKER_BONUS
    bonuses[_having(index, question.times)] += TIME_BONUS
    return bonuses


def gather_forms(index: Index, forms: Mapping[str, Iterable[str]]) -> Index:
    """Return the index with the hits of all forms of a word merged under that word."""
    gathered = {word: _union(index, (word, *others)) for word, others in forms.items()}
    found = {word: hits for word, hits in gathered.items() if len(hits.ordinals)}
    return replace(index, hits={**index.hits, **found})


def _union(index: Index, terms: Iterable[str]) -> Hits:
    counts = np.zeros(len(index.columns), dtype=np.int64)
    for term in terms:
        if term in index.hits:
            counts[index.hits[term].ordinals] += index.hits[term].counts
    ordinals = np.flatnonzero(counts)
    return Hits(ordinals, np.minimum(counts[ordinals], MAX_COUNT).astype(np.uint8))


def speakers_asked_about(index: Index, question: Question) -> dict[str, str]:
    """Return the question's names that are speakers: {plain term: term of texts by that speaker}."""
    return {term: f"@{name}" for term, name in question.names.items() if f"@{name}" in index.hits}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Values shared by all rankings for one question: the scores by its own words, the bonuses as fractions of the best
    score, the documents of a day that it names, those that may be found, and the evidence for the best."""

    index: Index
    neighbours: Neighbours
    asks: Mask
    own: Scores
    bonuses: Scores
    then: Mask | None
    findable: Mask
    evidence: float
    finds_always: bool = False
    """If nothing matches an open question, return the newest documents that ask nothing."""


def prepare(index: Index, question: Question, zone: tzinfo, among: Mask | None = None) -> Prepared:
    """Return the values shared by all rankings for this question. `among` marks the documents that may be found. Days
    in the question are those of `zone`."""
    live = index.columns.live
    findable = live if among is None else live & among
    speakers = speakers_asked_about(index, question)
    weights = question.weights(speakers)
    bonuses = _bonuses(index, question, speakers.values())
    evidence = _evidence(index, question, weights, findable)
    alone = _evidence(index, question, weights, findable, is_alone=True) if question.session else 0.0
    then = None
    if question.names_a_time and findable.any():
        days = _days_in(zone, index.columns.minute)
        spans = _spans(days[findable], question, is_found=alone >= CLEAR_EVIDENCE)
        dated = _date_scores(days, spans)
        then = dated > 0 if spans else None
        bonuses += DATE_BONUS * dated
        bonuses += DAY_BONUS * _date_scores(days, [span for span in spans if span.is_exact])
    is_then = then is not None and bool((then & findable).any())
    return Prepared(
        index=index,
        neighbours=find_neighbours(index.columns.previous),
        asks=_having(index, (ASKS,)),
        own=score_words(index, weights),
        bonuses=bonuses,
        then=then,
        findable=findable,
        evidence=1.0 if is_then or speakers else evidence,
        finds_always=question.asks_openly,
    )


def _spans(said: Days, question: Question, *, is_found: bool) -> tuple[DateSpan, ...]:
    """Return the days that a question names or, if its words find nothing, the day of the first or last conversation.
    `said` has a day for each document that may be found."""
    days = [date.fromordinal(int(day)) for day in np.unique(said)]
    if question.dates:
        return question.dates.resolve(set(days))
    if is_found:
        return ()
    day = days[0] if question.session == "first" else days[-1]
    return (DateSpan(day, day),)


def rank(
    asked: Prepared, limit: int, *, only_matches: bool = False, feedback: Scores | None = None
) -> Ranking:
    """Return the best `limit` documents; of equal ones the later comes first. `only_matches` leaves out the neighbours
    of matches. `feedback` has scores by words that are not in the question."""
    text = asked.own if feedback is None else asked.own + feedback
    near = _spread(text, asked.asks, asked.neighbours)
    relevant = (text if only_matches else near) > 0
    if asked.then is not None:
        relevant |= asked.then
    # Only findable documents count: a sent question is stored before it is answered, and matches itself best.
    best = float(near[asked.findable].max(initial=0.0)) or 1.0
    # A bonus alone makes no match.
    scores = np.where(relevant & asked.findable, near + best * asked.bonuses, -np.inf)
    if asked.finds_always and not only_matches and not (relevant & asked.findable).any():
        # Give all the same score, so that the newest come first. Texts with a question contain no answer.
        scores = np.where(asked.findable & ~asked.asks, 1.0, -np.inf)
    ordinals, best_scores = _best(scores, asked.index.columns.minute, limit)
    return Ranking(ordinals, best_scores, asked.evidence, _share_needed(asked))


def _share_needed(asked: Prepared) -> float:
    """Return the share of its room that a question needs. The more of its words the best document contains by itself,
    the less it needs. A day is recalled whole."""
    most = float(asked.own[asked.findable].max(initial=0.0))
    plenty = PLENTY * idf(asked.index.document_count, 1)
    return 1.0 if asked.then is not None or most <= plenty else plenty / most


def _best(scores: Scores, minutes: npt.NDArray[np.int32], limit: int) -> tuple[list[int], list[float]]:
    among = np.flatnonzero(scores >= _score_floor(scores, limit))
    # With fewer matches than wanted, the floor is the score of documents that must not be found.
    among = among[np.isfinite(scores[among])]
    order = among[np.lexsort((-among, -minutes[among], -scores[among]))][:limit]
    return order.tolist(), scores[order].tolist()


def _score_floor(scores: Scores, count: int) -> float:
    """Return a score that at least `count` documents reach, if there are so many: the lowest of the best group maxima.

    It is close to the score of the last document wanted, and ten times as fast to compute.
    """
    groups = np.maximum.reduceat(scores, np.arange(0, len(scores), GROUP)) if len(scores) else scores
    return float(np.partition(groups, -count)[-count]) if len(groups) > count else -np.inf
