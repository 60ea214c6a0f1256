"""Reads what a question asks for: its terms with their weights, the kinds, names, dates and times in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date

from memory.dates import DateSpan, find_dates
from memory.query_expansion import read_forms, read_kinds
from memory.small_talk import EVERYDAY, REQUESTED, REQUESTING, SMALL_TALK, is_request, needs_no_memory
from memory.terms import ASKS, QUESTION, Analyzer, fold_text, prefix_of

PREFIX_WEIGHT = 0.4
KIND_WEIGHT = 0.65
"""Weight of a word that belongs to a kind, beside 1 for the word that names the kind."""
IRREGULAR_WEIGHT = 0.5
"""Irregular words are everyday words, and tell less than their rarity suggests."""
SPEAKER_NAME_WEIGHT = 0.15
"""A speaker's name in a text tells little, because the other speakers use it all the time."""

_TIME_WORDS = """
    yesterday today tonight tomorrow last next ago week weekend month year day recently monday tuesday wednesday
    thursday friday saturday sunday january february march april june july august september october november december
"""
_ASKS = frozenset(["what", "who", "whose", "which", "why", "how", "when", "where", "does"])
"""Words that begin a question in English, and in no other language with this alphabet."""
_SOMEBODY = """
    i me my mine myself we us our ours you your yours he him his she her hers they them their theirs
"""
_HOW_IT_ASKS = "kind type sort like likely probably possibly potentially perhaps consider seem"
"""Words of the question form, not of its subject: "what kind of", "would she likely"."""
_LEAST_SUBJECT = 2
"""With fewer other words, those of the question form may be its subject: "What does Ann like?"."""
_WHAT_WAS_SAID = frozenset(_SOMEBODY.split()) | {"did", "was", "were", "had"}
"""A question with one of these is about somebody, or about what happened."""
_WORD = re.compile(r"[^\W_]+")
_HOW_TO = re.compile(r"how (?:do|can|could|should|would) (?:i|we|you)\b")
_OF_SOMEBODY = re.compile(r"(?<=\s)[A-Z][^\W_]*['’]s?(?!\w)")
_NAME = re.compile(r"(?<=[^.!?…:\s]\s)[\"'“‘«(]?([A-Z][a-z]+)\b")
"""Written with a capital inside a sentence: it has no other forms."""
_ASKS_WHEN = re.compile(r"\s*(?:and |so |but )?when\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Question:
    """`words` are the plain terms; `names` those that may be a speaker's, by the term of each; `forms` the terms of
    other forms of a word, by its own; `kinds` the terms of what is of a kind, by the word that names it; `times` the
    terms that tell a time, where one is asked for.
    `telling` are the words that say what it is about: of a request all but what is to be done, of a general question
    all but everyday words."""

    words: tuple[str, ...]
    telling: tuple[str, ...]
    names: Mapping[str, str]
    forms: Mapping[str, frozenset[str]]
    kinds: Mapping[str, frozenset[str]]
    dates: tuple[DateSpan, ...]
    is_small_talk: bool
    is_request: bool
    times: tuple[str, ...] = ()

    @property
    def lookups(self) -> set[str]:
        """Return every term whose postings the score may need."""
        prefixes = {prefix for word in self.words if (prefix := prefix_of(word))}
        speakers = {f"@{name}" for name in self.names.values()}
        marks = {QUESTION, ASKS}
        return {*self.own, *prefixes, *self.times, *speakers, *marks}.union(*self.kinds.values())

    @property
    def own(self) -> set[str]:
        """Return its words in all their forms."""
        return set(self.words).union(*self.forms.values())

    def as_written(self) -> Question:
        """Return the question for its words alone: without other forms, and without what belongs to a
        kind."""
        return replace(self, forms={}, kinds={})

    def weights(self, speakers: Iterable[str]) -> dict[str, float]:
        """Return the weight of each text term, once it is known which names are speakers' (plain terms)."""
        known = set(speakers)
        weights = {word: IRREGULAR_WEIGHT if word in self.forms else 1.0 for word in self.words}
        weights |= {word: SPEAKER_NAME_WEIGHT for word in self.words if word in known}
        for word in self.words:
            prefix = prefix_of(word)
            if prefix and word not in known and word not in self.forms:
                weights[prefix] = PREFIX_WEIGHT
        return weights | {kind_term(word): KIND_WEIGHT for word in self.kinds if word not in known}


def kind_term(word: str) -> str:
    """Return the term that stands for everything of a kind as if it were one word."""
    return f"#{word}"


def _asks(text: str) -> bool:
    """Return whether it is written as an English question."""
    first = _WORD.search(fold_text(text))
    return text.rstrip().endswith("?") or (first is not None and first[0] in _ASKS)


def is_general(text: str) -> bool:
    """Return whether it asks, in English, about nobody and no time: "how does a vaccine work?", not "how
    did the car work?"."""
    words = _WORD.findall(_HOW_TO.sub("how", fold_text(text)))
    asks = bool(words) and words[0] in _ASKS
    return asks and _WHAT_WAS_SAID.isdisjoint(words) and not _OF_SOMEBODY.search(text)


class QuestionReader:
    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._kinds = read_kinds(analyzer)
        self._forms = read_forms(analyzer)
        self._how_it_asks = frozenset(analyzer.words(_HOW_IT_ASKS))
        self._times = tuple(analyzer.words(_TIME_WORDS))
        self._requesting = frozenset(analyzer.words(" ".join(REQUESTING | SMALL_TALK)))
        self._requested = frozenset(analyzer.words(" ".join(REQUESTED)))
        self._everyday = frozenset(analyzer.words(EVERYDAY))

    def read(self, text: str, today: date) -> Question:
        words = self._words(text)
        capitalised = {*self._analyzer.words(" ".join(_NAME.findall(text)))}
        dates = find_dates(text, today)
        wants_something_done = is_request(text)
        asks_in_general = not wants_something_done and is_general(text)
        telling = self._subject(words) if wants_something_done else words
        return Question(
            words=words,
            telling=tuple(word for word in telling if not (asks_in_general and word in self._everyday)),
            names=self._names(text),
            forms={
                word: self._forms[word] for word in words if word in self._forms and word not in capitalised
            },
            kinds={word: self._kinds[word].difference(words) for word in words if word in self._kinds},
            dates=dates,
            is_small_talk=needs_no_memory(text) and not dates,
            is_request=wants_something_done,
            times=self._times if _ASKS_WHEN.match(text) else (),
        )

    def _words(self, text: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(self._analyzer.words(text)))
        about = tuple(word for word in words if word not in self._how_it_asks)
        return about if _asks(text) and len(about) >= _LEAST_SUBJECT else words

    def _subject(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Return what a request is about: "my violin" of a poem about it, and the poem where it names
        nothing else."""
        wanted = tuple(word for word in words if word not in self._requesting)
        return tuple(word for word in wanted if word not in self._requested) or wanted

    def _names(self, text: str) -> dict[str, str]:
        """Return each word that is one term, by that term."""
        folded = _WORD.findall(re.sub(r"['’]s\b", "", fold_text(text)))
        return {terms[0]: name for name in folded if len(terms := self._analyzer.words(name)) == 1}
