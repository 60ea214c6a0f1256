"""Scores turns for recall: the constants, the words that the best turns add to the question, and the choice within a
budget.

The score is BM25 with a turn's neighbours counted in, an answer most of all by its question, then parts of the best
score for who is asked about, for the dates the question names, and against turns that only ask. The best turns then
add their own telling words to the question, because the rest of an answer seldom repeats the words it was asked with.
Measured in `benchmarks/recall.py`.
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
"""Shares of the scores of the turns 1, 2, 3, 4 away, on either side, that are added to a turn's."""
ANSWER_WEIGHT = 1.0
"""Share of the turn just before, where that one asks."""
ASKED_WEIGHT = 0.5
"""Share of the turn just behind, where that one asks."""
SPEAKER_BONUS = 0.45
DATE_BONUS = 0.35
QUESTION_MALUS = 0.06
LENGTH_BONUS = 0.02
TIME_BONUS = 0.12
"""For a text that names a time, where the question asks for one."""
FEEDBACK_DOCUMENTS = 8
FEEDBACK_TERMS = 20
FEEDBACK_WEIGHT = 0.25
"""Weight of the most telling word of the best turns, beside 1 for the question's own."""
LEAST_SHARE = 0.3
"""A turn with less than this share of the best score is recalled only among the first few hundred tokens."""
LEAST_WORDS = 3
"""A turn of fewer words is no evidence for a remark: mostly it is one itself."""
DAY_BONUS = 1.0
"""For what was said on the very day, or in the conversation, that the question asks for: it outweighs words."""
CLEAR_EVIDENCE = 0.35
"""With less evidence than this, little is recalled."""
NAME_RARITY = 0.8
"""A name that the question gives is clear evidence where so rare, as a share of what a word is worth that was said
once."""
PLENTY = 2.5
"""Where one turn has more of a question than so many words that were said once, it needs as much less room: what it
asks for stands near the top."""
REMARK_EVIDENCE = 0.25
"""With less, a short message that asks nothing recalls nothing."""


def idf(document_count: int, containing: int) -> float:
    """Return how telling a term is: BM25's, never negative."""
    return log(1 + (document_count - containing + 0.5) / (containing + 0.5))


@dataclass(frozen=True, slots=True)
class Feedback:
    """One of the best texts: its words with their counts, and its score as a share of the best one's."""

    words: Mapping[str, int]
    share: float


def weigh_feedback(
    texts: Sequence[Feedback], idf_of: Callable[[str], float], known: Collection[str]
) -> dict[str, float]:
    """Return the weights of the most telling words of the best texts that are not `known` to the question
    (Rocchio)."""
    average = max(1.0, sum(sum(text.words.values()) for text in texts) / max(1, len(texts)))
    worth: dict[str, float] = defaultdict(float)
    for text in texts:
        length = sum(text.words.values()) / average
        for word, count in text.words.items():
            if word not in known and not word.isdigit():
                worth[word] += max(0.0, text.share) * min(count, 2) / (1 + length)
    telling = {word: value * idf_of(word) for word, value in worth.items()}
    # By the word as well, so that equal ones come in one order always.
    chosen = sorted(telling, key=lambda word: (-telling[word], word))[:FEEDBACK_TERMS]
    if not chosen or telling[chosen[0]] <= 0:
        return {}
    return {word: FEEDBACK_WEIGHT * telling[word] / telling[chosen[0]] for word in chosen}


NEAR_WEIGHT = 0.1
"""What a deviation of nearness counts, as a part of the best score. Vectors decide among what the words leave close
together: with a share as large as the words', a weak model takes away more than a good one brings."""


def add_nearness(scores: Mapping[int, float], nearness: Mapping[int, float]) -> dict[int, float]:
    """Return documents with their scores, best first. `nearness` is in deviations, also of what the words
    did not find."""
    # Where the words find nothing, nearness alone ranks.
    best = max(scores.values(), default=1.0)
    fused = dict(scores)
    for document, deviations in nearness.items():
        fused[document] = fused.get(document, 0.0) + NEAR_WEIGHT * best * deviations
    return dict(sorted(fused.items(), key=lambda scored: -scored[1]))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be recalled, as it would be shown. `tokens` counts all of it."""

    key: str
    text: str
    score: float
    tokens: int
    said_at: datetime
    order: int
    """Order among equal times."""


@dataclass(frozen=True, slots=True)
class RecallSize:
    """Room for recalled text, in both counts that have to hold: our estimate, and characters, of which others take
    four for a token."""

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
"""What is recalled where little speaks for it: a memory that is missed costs more than some lines too many."""
LEAST_ROOM = RecallSize(6, 24)
"""With less room hardly a turn fits any more."""
MOST_PASSED_OVER = 15
"""When so many in a row do not fit, what little room is left stays empty: reading on costs more than it brings."""
DAY_SIZE = RecallSize(8, 12)
"""The heading under which a day's recalled turns stand."""


def select_recall(candidates: Iterable[Candidate], room: RecallSize) -> list[Candidate]:
    """Return the best that fit, each text once, oldest first. Candidates come best first; one too long is
    passed over, and no more are read when the room is as good as full."""
    chosen: dict[str, Candidate] = {}
    days: set[date] = set()
    passed_over = 0
    for candidate in candidates:
        is_full = room.tokens < LEAST_ROOM.tokens or room.chars < LEAST_ROOM.chars
        if is_full or passed_over == MOST_PASSED_OVER:
            break
        day = candidate.said_at.date()
        # One character for the line end.
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
