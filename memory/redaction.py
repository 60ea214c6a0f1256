"""Finds what came from something forgotten in other texts, and takes it out, sentence by sentence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Any

from memory.extractive import find_facts
from memory.sentences import Vocabulary, bare_sentence, split_sentences
from memory.terms import fold_text

ALIKE = 0.6
"""Sentences that share this much of the shorter one's words say the same."""
LEAST_SHARED = 2
STRONG_FACT = 2.0
"""From this weight on a fact is an identifier, an address or a number: who repeats it repeats the sentence."""
LEAST_FACT_CHARS = 3
_IDENTIFIER = re.compile(r"[@/_]|\d.*[A-Za-z]|[A-Za-z].*\d|(?:\d\D?){5}")
"""An address, a path, letters with digits, or five digits: nobody else's by chance."""


class Forgotten:
    """What must not be said any more: texts, and the words that only they brought in."""

    def __init__(
        self,
        texts: Iterable[str],
        vocabulary: Vocabulary,
        *,
        common: Collection[str] | None = None,
        is_spared: Callable[[str], bool] | None = None,
    ) -> None:
        """For texts that were made of these, `common` are the words that are also said elsewhere: any other gives a
        text away. None for what people said themselves: there, single words prove nothing. A sentence that
        `is_spared` stays, because somebody else said it as well."""
        self._vocabulary = vocabulary
        self._is_spared = is_spared
        self._is_derived = common is not None
        self._exact: set[str] = set()
        self._sentences: list[frozenset[str]] = []
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._rare: set[str] = set()
        self._far: set[str] = set()
        facts: set[str] = set()
        for text in texts:
            for sentence in split_sentences(text):
                self._add(sentence, common)
                facts |= {fact for fact in _strong_facts(sentence) if self._gives_away(fact, common)}
        self._facts = _any_of(facts)

    def _add(self, sentence: str, common: Collection[str] | None) -> None:
        words = self._vocabulary.gist(sentence)
        if not words:
            return
        self._exact.add(_fold(sentence))
        for word in words:
            self._by_word[word].append(len(self._sentences))
        self._sentences.append(words)
        if common is not None:
            self._rare |= self._vocabulary.rare_words(sentence) - set(common)

    @staticmethod
    def _gives_away(fact: str, common: Collection[str] | None) -> bool:
        """What people said themselves shares years and small numbers with much else."""
        return _IDENTIFIER.search(fact) is not None if common is None else fact.casefold() not in common

    def __bool__(self) -> bool:
        return bool(self._sentences)

    @property
    def telling_words(self) -> frozenset[str]:
        """What gives it away, if nobody says it elsewhere."""
        return frozenset(self._by_word)

    def carries(self, sentence: str) -> bool:
        """Whether the sentence says something of it."""
        if self._is_spared is not None and self._is_spared(sentence):
            return False
        if _fold(sentence) in self._exact:
            return True
        telling = self._vocabulary.telling_words(sentence)
        words = self._vocabulary.gist_of(telling)
        if telling & self._rare or self._facts.search(sentence):
            return True
        if self._is_derived and self._is_contained(self._vocabulary.rare_of(telling)):
            return True
        shared: dict[int, int] = defaultdict(int)
        for word in words:
            for number in self._by_word.get(word, ()):
                shared[number] += 1
        return any(
            count >= LEAST_SHARED and count >= ALIKE * min(len(words), len(self._sentences[number]))
            for number, count in shared.items()
        )

    def _is_contained(self, words: frozenset[str]) -> bool:
        """Whether one sentence has all of these words: the other says nothing else."""
        numbers = [set(self._by_word.get(word, ())) for word in words]
        return bool(numbers) and bool(set.intersection(*numbers))

    def _touches(self, text: str) -> bool:
        """Quick: whether it has a word or fact of it at all. Most long texts have none, and are made of few words."""
        unknown = set(fold_text(text).split()) - self._far
        return any(map(self._is_near, unknown)) or self._facts.search(text) is not None

    def _is_near(self, token: str) -> bool:
        words = self._vocabulary.words(token)
        if words.isdisjoint(self._by_word) and words.isdisjoint(self._rare):
            self._far.add(token)
            return False
        return True

    def carried(self, text: str) -> list[str]:
        """Its sentences that say something of it."""
        if not self._touches(text):
            return []
        return [sentence.strip() for sentence in split_sentences(text) if self.carries(sentence)]

    def redact(self, text: str) -> str:
        """The text without those sentences; unchanged where there is none."""
        if not self._touches(text):
            return text
        pieces = split_sentences(text)
        kept = [piece for piece in pieces if not self.carries(piece)]
        if len(kept) == len(pieces):
            return text
        return _without_bare_leads("".join(kept).strip())

    def redact_values(self, value: Any) -> Any:
        """The same for every text in what was read from JSON; keys stay."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list):
            return [self.redact_values(item) for item in value]
        if isinstance(value, dict):
            return {key: self.redact_values(item) for key, item in value.items()}
        return value


def _fold(sentence: str) -> str:
    return " ".join(bare_sentence(sentence).casefold().split())


def _strong_facts(sentence: str) -> list[str]:
    facts = find_facts(sentence).items()
    return [fact for fact, weight in facts if weight >= STRONG_FACT and len(fact) >= LEAST_FACT_CHARS]


def _any_of(facts: Collection[str]) -> re.Pattern[str]:
    """Whole: INV-20 is not in INV-2041. Scripts without spaces know no ends of words."""
    longest_first = sorted(facts, key=lambda fact: (-len(fact), fact))
    return re.compile(
        rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9_])"
        if facts
        else r"(?!)"
    )


def _without_bare_leads(text: str) -> str:
    """A lead such as "Word for word:" goes with the last of what it led to."""
    lines = text.split("\n")
    while lines and (not lines[-1].strip() or lines[-1].rstrip().endswith(":")):
        lines.pop()
    return "\n".join(lines)
