"""What makes a turn worth recalling: the question's terms with their weights, the constants of the score, and the
choice within a budget. Where postings come from is not its concern.

The score is BM25 with a turn's neighbours counted in, then parts of the best score for who is asked about, for the
dates the question names, and against turns that only ask. Measured in `benchmarks/recall.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from math import log

from memory.dates import DateSpan, find_dates
from memory.terms import SMALL_TALK, Analyzer, fold_text, prefix_of

K1 = 3.0
B = 1.0
NEIGHBOUR_WEIGHTS = (0.65, 0.4, 0.25, 0.15)
"""What a turn gets of the score of those 1, 2, 3, 4 turns away, on either side."""
PREFIX_WEIGHT = 0.4
SPEAKER_NAME_WEIGHT = 0.15
"""A speaker's name in the text says little: the others say it all the time."""
SPEAKER_BONUS = 0.45
DATE_BONUS = 0.35
QUESTION_MALUS = 0.06
LENGTH_BONUS = 0.02
MIN_COVERAGE = 0.2
"""Below it nothing fits: the best turn's share of the question's terms, by idf."""

DAY_TOKENS = 8
"""The heading under which a day's recalled turns stand."""


@dataclass(frozen=True, slots=True)
class Question:
    """`words` are the plain terms; `names` those that may be a speaker's, by the term of each."""

    words: tuple[str, ...]
    names: Mapping[str, str]
    dates: tuple[DateSpan, ...]
    is_small_talk: bool

    @property
    def lookups(self) -> set[str]:
        """Every term whose postings the score may need."""
        prefixes = {prefix for word in self.words if (prefix := prefix_of(word))}
        return {*self.words, *prefixes, *(f"@{name}" for name in self.names.values()), "?"}

    def weights(self, speakers: Iterable[str]) -> dict[str, float]:
        """The weight of each text term, once it is known which names are speakers' (plain terms)."""
        known = set(speakers)
        weights = {word: SPEAKER_NAME_WEIGHT if word in known else 1.0 for word in self.words}
        for word in self.words:
            prefix = prefix_of(word)
            if prefix and word not in known:
                weights[prefix] = PREFIX_WEIGHT
        return weights


def read_question(text: str, analyzer: Analyzer, today: date) -> Question:
    folded = re.findall(r"[^\W_]+", re.sub(r"['’]s\b", "", fold_text(text)))
    names = {terms[0]: name for name in folded if len(terms := analyzer.words(name)) == 1}
    words = tuple(dict.fromkeys(analyzer.words(text)))
    telling = [name for term, name in names.items() if name not in SMALL_TALK]
    dates = find_dates(text, today)
    unspaced = any(word not in names for word in words)
    return Question(words, names, dates, is_small_talk=not telling and not dates and not unspaced)


def idf(document_count: int, containing: int) -> float:
    """How telling a term is: BM25's, never negative."""
    return log(1 + (document_count - containing + 0.5) / (containing + 0.5))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that may be recalled, as it would be shown. `tokens` counts all of it."""

    key: str
    text: str
    score: float
    tokens: int
    said_at: datetime
    order: int
    """Ties in time are put in this order."""


def select_recall(candidates: Iterable[Candidate], budget_tokens: int) -> list[Candidate]:
    """The best that fit, each text once, oldest first. Candidates come best first; one too long is passed over."""
    chosen: dict[str, Candidate] = {}
    days: set[date] = set()
    left = budget_tokens
    for candidate in candidates:
        fingerprint = " ".join(candidate.text.split()).casefold()
        day = candidate.said_at.date()
        cost = candidate.tokens + (0 if day in days else DAY_TOKENS)
        if cost <= left and fingerprint not in chosen:
            chosen[fingerprint] = candidate
            days.add(day)
            left -= cost
    return sorted(chosen.values(), key=lambda candidate: (candidate.said_at, candidate.order))
