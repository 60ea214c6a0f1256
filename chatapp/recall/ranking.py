"""Scores the documents that a search loaded, without a database. The constants are in `memory.ranking`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from functools import cache
from typing import TypeAlias

from agents.arrays import np, npt
from chatapp.recall.analysis import MAX_COUNT, MAX_LENGTH
from chatapp.recall.index_format import Columns, Hits, Ordinals
from memory.date_spans import DateSpan
from memory.questions import Question, is_short_number
from memory.ranking import (
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
from memory.terms import ASKS, QUESTION

_EPOCH = date(1970, 1, 1).toordinal()
DAY_MINUTES = 1440
GROUP = 16

Scores: TypeAlias = "npt.NDArray[np.float64]"
Mask: TypeAlias = "npt.NDArray[np.bool_]"
Days: TypeAlias = "npt.NDArray[np.int64]"
"""Ordinals of days, as `date` counts them."""


@dataclass(frozen=True, slots=True)
class Index:
    """What one search loaded: a row of `columns` per ordinal, and the hits of its terms."""

    columns: Columns
    hits: Mapping[str, Hits]
    document_count: int
    total_length: int

    def idf_of(self, term: str) -> float:
        found = self.hits.get(term)
        return idf(self.document_count, len(found.ordinals) if found else 0)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Ordinals best first with their scores, how much speaks for the best being what was asked for, 0 to 1, and the
    share of its room that the question needs."""

    ordinals: list[int]
    scores: list[float]
    evidence: float
    needed: float = 1.0

    @property
    def is_clear(self) -> bool:
        return self.evidence >= CLEAR_EVIDENCE

    def worth_recalling(self, least: int) -> dict[int, float]:
        """Return scores by ordinals without those far behind the best, but for the first `least` ones."""
        count = sum(score >= LEAST_SHARE * self.scores[0] for score in self.scores)
        return dict(list(zip(self.ordinals, self.scores, strict=True))[: max(count, least)])


NO_RANKING = Ranking([], [], 0.0)


def score_words(index: Index, weights: Mapping[str, float]) -> Scores:
    """Return the BM25 score of each document."""
    scores = np.zeros(len(index.columns))
    average = max(1.0, index.total_length / max(1, index.document_count))
    for term in sorted(weights):  # one order of adding, so that two databases give the same sum
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
    """Return how much of what the question is about one findable document and those beside it have, by how telling its
    words are. `is_alone`: that one document has it, without what only names a conversation.

    A word that nobody said counts like one that was said once: pairs of characters and other forms of a word are
    unseen all the time. Of a long history common words alone are no evidence, however many of them fit, and neither is
    a short number, which stands beside everything. A name that was said, and seldom, is clear evidence by itself.
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
    """Return these documents, and the one that was said before and behind each."""
    previous = index.columns.previous
    inside = np.zeros(len(index.columns), dtype=np.bool_)
    inside[ordinals] = True
    # -1 stands for none and would be the last row.
    behind = inside[previous] & (previous >= 0)
    before = previous[ordinals]
    inside[before[before >= 0]] = True
    return inside | behind


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Which document was said 1, 2, 3, 4 turns before which. Nearly always it is the row so many above: `exceptions`
    are, for each distance, the rows where it is not. `other_pairs` are the pairs of those: (later, earlier)
    documents."""

    exceptions: tuple[Ordinals, ...]
    other_pairs: tuple[tuple[Ordinals, Ordinals], ...]


def find_neighbours(previous: npt.NDArray[np.int32]) -> Neighbours:
    follows = previous == np.arange(-1, len(previous) - 1)
    # The first row has none above it, and -1, which says so, looks like the number of that row.
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
    """Return the scores with a share of the neighbours' scores added. A question gives a larger share to its answer.

    At each distance the document before is added first, then the one after, so that the sum does not depend on the
    order of the rows.
    """
    result = scores.copy()
    pairs = zip(NEIGHBOUR_WEIGHTS, neighbours.exceptions, neighbours.other_pairs, strict=True)
    for distance, (weight, exceptions, (later, earlier)) in enumerate(pairs, start=1):
        onward = back = weight * scores
        if distance == 1:
            onward = np.where(asks, ANSWER_WEIGHT, weight) * scores
            back = np.where(asks, ASKED_WEIGHT, weight) * scores
        # Slices are added many times faster than numbered rows, and nearly all rows follow the one above.
        result[distance:] += _without(onward[:-distance], exceptions)
        result[later] += onward[earlier]
        result[:-distance] += _without(back[distance:], exceptions)
        # A document is followed by one at most: of a row that occurred twice, NumPy would add only one.
        result[earlier] += back[later]
    return result


def _without(scores: Scores, rows: Ordinals) -> Scores:
    others = scores.copy()
    others[rows] = 0.0
    return others


def _days_in(zone: tzinfo, minutes: npt.NDArray[np.int32]) -> Days:
    """Return the day of each minute since 1970 as its ordinal. A zone is asked once a day: where it changes its clocks,
    some hours of that day may count to the day beside it."""
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


# Made when it is asked for: a process at rest does without numpy, which takes 16 MB.
@cache
def _length_bonuses() -> Scores:
    """Return what a document of each length gets."""
    return LENGTH_BONUS * np.log1p(np.arange(MAX_LENGTH + 1, dtype=np.float64))


def _bonuses(index: Index, question: Question, speakers: Iterable[str]) -> Scores:
    bonuses = _length_bonuses()[index.columns.length]
    bonuses[_having(index, (QUESTION,))] -= QUESTION_MALUS
    bonuses[_having(index, speakers)] += SPEAKER_BONUS
    bonuses[_having(index, question.times)] += TIME_BONUS
    return bonuses


def gather_forms(index: Index, forms: Mapping[str, Iterable[str]]) -> Index:
    """Return the index with each word found wherever one of its forms occurs."""
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
    """Return the question's names that speakers have: the plain term, and the term of what they said."""
    return {term: f"@{name}" for term, name in question.names.items() if f"@{name}" in index.hits}


@dataclass(frozen=True, slots=True)
class Prepared:
    """What every ranking for one question shares: the scores by its own words, the bonuses as parts of the best score,
    the documents of a day it names, those that may be found, and how much speaks for the best."""

    index: Index
    neighbours: Neighbours
    asks: Mask
    own: Scores
    bonuses: Scores
    then: Mask | None
    findable: Mask
    evidence: float
    finds_always: bool = False
    """Where no word of a question was ever said, the newest that is told stands for what was meant."""


def prepare(index: Index, question: Question, zone: tzinfo, among: Mask | None = None) -> Prepared:
    """Return what every ranking for this question shares. `among` says which documents may be found; the days that a
    question names are those of `zone`."""
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
    """Return the days that a question asks for, and those of the first or last conversation where nothing is found by
    its words. `said` has a day for each document that may be found."""
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
    """Return the best `limit` documents; of equal ones the later comes first. `only_matches` leaves out the
    neighbours of matches; `feedback` are scores by words that are not in the question."""
    text = asked.own if feedback is None else asked.own + feedback
    near = _spread(text, asked.asks, asked.neighbours)
    relevant = (text if only_matches else near) > 0
    if asked.then is not None:
        relevant |= asked.then
    # Of what may be found: a question that was sent is stored before it is answered, and fits itself best.
    best = float(near[asked.findable].max(initial=0.0)) or 1.0
    # A bonus alone finds nothing.
    scores = np.where(relevant & asked.findable, near + best * asked.bonuses, -np.inf)
    if asked.finds_always and not only_matches and not (relevant & asked.findable).any():
        # All alike, so that the newest come first; what asks tells nothing.
        scores = np.where(asked.findable & ~asked.asks, 1.0, -np.inf)
    ordinals, best_scores = _best(scores, asked.index.columns.minute, limit)
    return Ranking(ordinals, best_scores, asked.evidence, _share_needed(asked))


def _share_needed(asked: Prepared) -> float:
    """Return the share of its room that a question needs: less, the more its best document has by itself of its words.
    A day is brought back whole."""
    most = float(asked.own[asked.findable].max(initial=0.0))
    plenty = PLENTY * idf(asked.index.document_count, 1)
    return 1.0 if asked.then is not None or most <= plenty else plenty / most


def _best(scores: Scores, minutes: npt.NDArray[np.int32], limit: int) -> tuple[list[int], list[float]]:
    among = np.flatnonzero(scores >= _score_floor(scores, limit))
    # Where there are fewer than wanted, the floor is the score of what must not be found.
    among = among[np.isfinite(scores[among])]
    order = among[np.lexsort((-among, -minutes[among], -scores[among]))][:limit]
    return order.tolist(), scores[order].tolist()


def _score_floor(scores: Scores, count: int) -> float:
    """Return a score that at least `count` documents reach, if there are so many: the least of the best groups' maxima.

    It is close to the score of the last document wanted, and found ten times as fast.
    """
    groups = np.maximum.reduceat(scores, np.arange(0, len(scores), GROUP)) if len(scores) else scores
    return float(np.partition(groups, -count)[-count]) if len(groups) > count else -np.inf
