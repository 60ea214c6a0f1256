"""Parses a question: its terms with their weights, and the names, dates and times in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from memory.language.irregular_forms import forms_of, read_forms
from memory.language.languages import (
    CAPITAL,
    QUESTION_MARKS,
    UNSPACED_RUN,
    close_gaps,
    fold_text,
    latin_language,
    stop_words,
    stop_words_of,
    unspaced_language,
)
from memory.language.small_talk import is_courtesy
from memory.language.terms import (
    ASKS,
    QUESTION,
    Analyzer,
    characters_of,
    is_letters,
    pairs_of,
    prefix_of,
    split_pieces,
)
from memory.recall.dates import Dates, find_dates
from memory.recall.sessions import Session, find_session, mentions_speaker, words_of_session

PREFIX_WEIGHT = 0.4
CHARACTER_WEIGHT = 0.4
STOP_WEIGHT = 0.4
"""Weight of a stop word. It still counts, because some questions are about such words."""
HALF_STOP_WEIGHT = 0.5
"""Weight of a pair of characters of which one is a stop word: the pair is hardly ever a word."""
NUMBER_WEIGHT = 0.4
"""Weight of a number of one or two digits, which says little without the thing counted."""
IRREGULAR_WEIGHT = 0.5
"""Irregular words are everyday words, and say less than their rarity suggests."""
SPEAKER_NAME_WEIGHT = 0.15
"""A speaker's name says little, because the other speakers use it all the time."""
TELLING = 0.6
"""Words of at least this weight, and numbers, say what the question is about: "What is 3 times 4?" is not about
times."""

_TIME_WORDS = """
    yesterday today tonight tomorrow last next ago week weekend month year day recently monday tuesday wednesday
    thursday friday saturday sunday january february march april june july august september october november december
"""
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(rf"(?<=[^.!?…:\s]\s)[\"'“‘«(]?([{CAPITAL}][^\W\d_A-Z]+)\b")
"""A capitalised word inside a sentence. As a name it has no other forms."""
_CAPITALISES_NOUNS = "de"
_ASKS_WHEN = re.compile(r"\s*(?:and |so |but )?when\b", re.IGNORECASE)
_SHORT_WORDS = 5
_SHORT_CHARACTERS = 9
_HIRAGANA = re.compile("[\u3040-\u309f]")


@dataclass(frozen=True, slots=True)
class Question:
    """`words` are the plain terms with their weights, `characters` the terms of single characters. `names` are words
    that may be a speaker's name, by term; `forms` the terms of other forms of a word, by its own term. `times` are
    terms of times, if the question asks when. `telling` are the words that say what it is about, `proper` those of them
    that are written as a name. `naming` are the words that name the `session`.

    `is_remark`: short and asks nothing, so it recalls nothing without evidence. `is_asked`: has a question mark.
    """

    words: Mapping[str, float]
    characters: tuple[str, ...]
    telling: tuple[str, ...]
    proper: tuple[str, ...]
    names: Mapping[str, str]
    forms: Mapping[str, frozenset[str]]
    dates: Dates
    session: Session | None
    is_small_talk: bool
    is_remark: bool
    is_asked: bool = False
    times: tuple[str, ...] = ()
    naming: frozenset[str] = frozenset()

    @property
    def lookups(self) -> set[str]:
        """Return every term whose postings the score may need."""
        prefixes = {prefix for word in self.words if (prefix := prefix_of(word))}
        speakers = {f"@{name}" for name in self.names.values()}
        return {*self.own, *self.characters, *prefixes, *self.times, *speakers, QUESTION, ASKS}

    @property
    def own(self) -> set[str]:
        """Return the words in all their forms."""
        return set(self.words).union(*self.forms.values())

    @property
    def names_a_time(self) -> bool:
        return bool(self.dates) or self.session is not None

    @property
    def asks_openly(self) -> bool:
        """Return whether it asks about more than one word, and names no person or time that memory may not contain."""
        return self.is_asked and len(self.telling) > 1 and not (self.proper or self.names_a_time)

    @property
    def is_vague(self) -> bool:
        """Return whether it is a remark that names nobody and no time, and at least half of whose words do not say what
        it is about, e.g. "sounds good to me"."""
        return (
            self.is_remark
            and 2 * len(self.telling) <= len(self.words)
            and not (self.proper or self.names_a_time)
        )

    def as_written(self) -> Question:
        """Return the question with its words as written, without other forms."""
        return replace(self, forms={})

    def weights(self, speakers: Iterable[str]) -> dict[str, float]:
        """Return the weight of each text term. `speakers` are the plain terms of all speakers' names."""
        known = set(speakers)
        weights = {word: SPEAKER_NAME_WEIGHT if word in known else own for word, own in self.words.items()}
        for word, own in self.words.items():
            prefix = prefix_of(word)
            if prefix and word not in known and own != IRREGULAR_WEIGHT:
                weights[prefix] = max(weights.get(prefix, 0.0), PREFIX_WEIGHT * own)
        return weights | dict.fromkeys(self.characters, CHARACTER_WEIGHT)


class QuestionReader:
    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._forms = read_forms(analyzer)
        self._times = tuple(analyzer.words(_TIME_WORDS))

    def read(self, text: str, today: date) -> Question:
        text = close_gaps(text)
        dates = find_dates(text, today)
        session = find_session(text)
        pieces = split_pieces(fold_text(text))
        language = latin_language(word for _, word in pieces if is_letters(word))
        distinct = list(dict.fromkeys(pieces))
        words = self._weigh(text, distinct, language)
        capitalised = {*self._analyzer.words(" ".join(_NAME.findall(text)))}
        irregular = {
            word: self._forms[word] for word in words if word in self._forms and word not in capitalised
        }
        words |= {word: min(words[word], IRREGULAR_WEIGHT) for word in irregular}
        telling = tuple(word for word, weight in words.items() if _tells_subject(word, weight))
        is_remark = _is_short(pieces) and not any(mark in text for mark in QUESTION_MARKS)
        asks_nothing = is_courtesy(text) or (is_remark and not telling and not mentions_speaker(text))
        return Question(
            words=words,
            characters=tuple(self._characters(pieces)),
            telling=telling,
            proper=tuple(
                word
                for word in telling
                # German capitalises every noun.
                if word in capitalised and word not in self._times and language != _CAPITALISES_NOUNS
            ),
            names=self._names(distinct),
            forms=self._with_stems(distinct, language, irregular),
            dates=dates,
            session=session,
            is_small_talk=asks_nothing and not dates and session is None,
            is_remark=is_remark,
            is_asked=any(mark in text for mark in QUESTION_MARKS),
            times=self._times if _ASKS_WHEN.match(text) else (),
            naming=frozenset(self._analyzer.words(words_of_session(text))) if session else frozenset(),
        )

    def _weigh(self, text: str, pieces: list[tuple[str, str]], language: str) -> dict[str, float]:
        """Return the weight of each plain term, in the order of the text."""
        weights: dict[str, float] = {}
        for run, word in pieces:
            if run:
                run_language = unspaced_language(run)
                for pair in pairs_of(run):
                    weights[pair] = max(weights.get(pair, 0.0), _weigh_pair(pair, run, run_language))
                continue
            for term in self._analyzer.words(word):
                weights[term] = max(weights.get(term, 0.0), _weigh_word(word, language))
        return weights | {term: 1.0 for term in self._analyzer.words(text) if term not in weights}

    def _characters(self, pieces: list[tuple[str, str]]) -> Iterator[str]:
        for run, _ in pieces:
            stops = stop_words(unspaced_language(run)) if run else frozenset()
            yield from (term for term in characters_of(run) if run and term[1:] not in stops)

    def _with_stems(
        self, pieces: list[tuple[str, str]], language: str, irregular: Mapping[str, frozenset[str]]
    ) -> dict[str, frozenset[str]]:
        """Return the other forms of each word: irregular ones, and its stem in the question's language."""
        forms = dict(irregular)
        for _, word in pieces:
            for term in self._analyzer.words(word):
                others = forms_of(word, term)
                if is_letters(word):
                    others |= frozenset(self._analyzer.language_terms([word], language))
                if others:
                    forms[term] = forms.get(term, frozenset()) | others
        return forms

    def _names(self, pieces: list[tuple[str, str]]) -> dict[str, str]:
        """Return the words that consist of one term, by that term."""
        return {
            terms[0]: word for _, word in pieces if word and len(terms := self._analyzer.words(word)) == 1
        }


def is_short_number(word: str) -> bool:
    """Return whether it is a number of one or two digits, which says little without the thing counted."""
    return word.isdecimal() and len(word) < 3


def _weigh_word(word: str, language: str) -> float:
    if is_short_number(word):
        return NUMBER_WEIGHT
    return STOP_WEIGHT if word in stop_words_of(word, language) else 1.0


def _weigh_pair(pair: str, run: str, language: str) -> float:
    """Return the weight of two characters: less if they are, or begin or end with, a stop word."""
    stops = stop_words(language)
    if pair in stops or run in stops:
        return STOP_WEIGHT / 2
    if language == "ko":
        # In Korean, particles and endings follow the first pair of a word.
        return 1.0 if run.startswith(pair) or (len(run) > 3 and run[1:3] == pair) else HALF_STOP_WEIGHT
    # Hiragana are mostly endings and particles.
    stopping = sum(character in stops or _HIRAGANA.match(character) is not None for character in pair)
    return (1.0, HALF_STOP_WEIGHT, STOP_WEIGHT / 2)[stopping]


def _tells_subject(word: str, weight: float) -> bool:
    """Return whether the word says what the question is about. Chinese and Japanese pairs with one stop character
    count, because the character is often no stop word there, as in 光合."""
    is_half = (
        weight >= HALF_STOP_WEIGHT and bool(UNSPACED_RUN.match(word)) and unspaced_language(word) != "ko"
    )
    return weight >= TELLING or is_half or word.isdecimal()


def _is_short(pieces: list[tuple[str, str]]) -> bool:
    words = sum(1 for _, word in pieces if word)
    return words <= _SHORT_WORDS and sum(len(run) for run, _ in pieces) <= _SHORT_CHARACTERS
