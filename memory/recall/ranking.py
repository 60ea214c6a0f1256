"""Scores turns for recall: the constants, the words that the best turns add to the question, and the choice within a
budget.

The score is BM25 plus shares of the neighbours' scores, most of all of an answer's question. Then shares of the best
score are added for the person asked about and for the dates that the question names, and subtracted for turns that only
ask. The best turns then add their own telling words to the question, because the rest of an answer seldom repeats the
question's words. Measured in `benchmarks/recall.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from math import log

K1 = 3.0
B = 1.0
NEIGHBOUR_WEIGHTS = (0.6, 0.4, 0.25, 0.15)
"""Shares of the scores of the turns 1, 2, 3, 4 away, on either side, that are added to a turn's score."""
ANSWER_WEIGHT = 1.0
"""Share of the previous turn's score, if that turn asks."""
ASKED_WEIGHT = 0.5
"""Share of the next turn's score, if that turn asks."""
SPEAKER_BONUS = 0.45
DATE_BONUS = 0.35
QUESTION_MALUS = 0.06
LENGTH_BONUS = 0.02
TIME_BONUS = 0.12
"""For a text that names a time, if the question asks for one."""
FEEDBACK_DOCUMENTS = 8
FEEDBACK_TERMS = 20
FEEDBACK_WEIGHT = 0.25
"""Weight of the most telling word of the best turns; the question's own words have 1."""
LEAST_SHARE = 0.3
"""A turn with less than this share of the best score is recalled only among the first few hundred tokens."""
LEAST_WORDS = 3
"""A turn of fewer words is no evidence for a remark, because it is mostly a remark itself."""
DAY_BONUS = 1.0
"""For turns of the very day, or conversation, that the question asks for: it outweighs words."""
CLEAR_EVIDENCE = 0.35
"""With less evidence than this, little is recalled."""
NAME_RARITY = 0.8
"""A name in the question is clear evidence if it is this rare, as a share of the weight of a word that was said
once."""
PLENTY = 2.5
"""If one turn has more of a question than this many words that were said once, the question needs proportionally less
room, because its answer is near the top."""
REMARK_EVIDENCE = 0.25
"""With less evidence, a short message that asks nothing recalls nothing."""


def idf(document_count: int, containing: int) -> float:
    """Return the inverse document frequency of a term (BM25), never negative."""
    return log(1 + (document_count - containing + 0.5) / (containing + 0.5))


@dataclass(frozen=True, slots=True)
class Feedback:
    """One of the best texts: its words with their counts, and its score as a share of the best score."""

    words: Mapping[str, int]
    share: float


def weigh_feedback(
    texts: Sequence[Feedback], idf_of: Callable[[str], float], known: Collection[str]
) -> dict[str, float]:
    """Return the weights of the most telling words of the best texts that are not `known` from the question
    (Rocchio)."""
    average = max(1.0, sum(sum(text.words.values()) for text in texts) / max(1, len(texts)))
    worth: dict[str, float] = defaultdict(float)
    for text in texts:
        length = sum(text.words.values()) / average
        for word, count in text.words.items():
            if word not in known and not word.isdigit():
                worth[word] += max(0.0, text.share) * min(count, 2) / (1 + length)
    telling = {word: value * idf_of(word) for word, value in worth.items()}
    # Sort by the word as well, so that ties have a fixed order.
    chosen = sorted(telling, key=lambda word: (-telling[word], word))[:FEEDBACK_TERMS]
    if not chosen or telling[chosen[0]] <= 0:
        return {}
    return {word: FEEDBACK_WEIGHT * telling[word] / telling[chosen[0]] for word in chosen}


NEAR_WEIGHT = 0.1
"""Weight of one standard deviation of nearness, as a share of the best score. Vectors decide among texts that the words
leave close together: with the weight of the words, a weak model would harm more than a good one helps."""


def add_nearness(scores: Mapping[int, float], nearness: Mapping[int, float]) -> dict[int, float]:
    """Return documents with their scores, best first. `nearness` is in standard deviations, and includes documents that
    the words did not find."""
    # If the words find nothing, nearness alone ranks.
    best = max(scores.values(), default=1.0)
    fused = dict(scores)
    for document, deviations in nearness.items():
        fused[document] = fused.get(document, 0.0) + NEAR_WEIGHT * best * deviations
    return dict(sorted(fused.items(), key=lambda scored: -scored[1]))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may be recalled, as it would be shown. `tokens` counts all of it."""

    key: str
    text: str
    score: float
    tokens: int
    said_at: datetime
    order: int
    """Order among equal times."""


@dataclass(frozen=True, slots=True)
class RecallSize:
    """Room for recalled text, in two counts that both limit it: our estimate, and characters, because others count four
    characters as a token."""

    tokens: int
    chars: int

    def less(self, tokens: int, chars: int) -> RecallSize:
        return RecallSize(self.tokens - tokens, self.chars - chars)

    def at_most(self, other: RecallSize) -> RecallSize:
        return RecallSize(min(self.tokens, other.tokens), min(self.chars, other.chars))

    @property
    def is_left(self) -> bool:
        return self.tokens >= 0 and self.chars >= 0


LITTLE = RecallSize(300, 1_200)
"""Room if there is little evidence: a missed memory costs more than a few unneeded lines."""
LEAST_ROOM = RecallSize(6, 24)
"""With less room hardly any turn fits."""
MOST_PASSED_OVER = 15
"""After this many in a row that do not fit, the remaining room stays empty: reading on costs more than it gains."""
DAY_SIZE = RecallSize(8, 12)
"""The heading of the turns that are recalled from one day."""


def select_recall(candidates: Iterable[Candidate], room: RecallSize) -> list[Candidate]:
    """Return the best candidates that fit, each text once, oldest first. Candidates come best first; one that is too
    long is skipped, and reading stops when the room is nearly full."""
    chosen: dict[str, Candidate] = {}
    days: set[date] = set()
    passed_over = 0
    for candidate in candidates:
        is_full = room.tokens < LEAST_ROOM.tokens or room.chars < LEAST_ROOM.chars
        if is_full or passed_over == MOST_PASSED_OVER:
            break
        day = candidate.said_at.date()
        # One more character for the line end.
        left = room.less(candidate.tokens, len(candidate.text) + 1)
        left = left if day in days else left.less(DAY_SIZE.tokens, DAY_SIZE.chars)
        passed_over = 0 if left.is_left else passed_over + 1
        if not left.is_left:
            continue
        fingerprint = " ".join(candidate.text.split()).casefold()
        if fingerprint not in chosen:
            chosen[fingerprint] = candidate
            days.add(day)
            room = left
    return sorted(chosen.values(), key=lambda candidate: (candidate.said_at, candidate.order))
