"""Splits texts into sentences, which joined are the text, and names the words that tell sentences apart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.small_talk import EVERYDAY, SMALL_TALK
from memory.terms import Analyzer

_END = re.compile(r"\n+|(?<=[.!?…؟।])[\"'”’)\]»]*[ \t]+|(?<=[。！？])")
_FRAME = re.compile(r"^(?:[-*•]|\d+\.|(?:User|Assistant|Tool|System|user|assistant|tool|memory):|\s)+")
_BETWEEN = re.compile(r"[\W_]+")


def split_sentences(text: str) -> list[str]:
    """Return the sentences, each with the white space that follows it."""
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = 0
    for match in _END.finditer(text):
        if text[start : match.end()].strip():
            yield text[start : match.end()]
            start = match.end()
    if start < len(text):
        yield text[start:]


def bare_sentence(sentence: str) -> str:
    """Return the sentence without the list mark or the speaker in front of it."""
    return _FRAME.sub("", sentence).strip()


class Vocabulary:
    """The words that tell sentences apart, as the search index stems them."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._small_talk = frozenset(analyzer.words(" ".join(SMALL_TALK)))
        self._everyday = frozenset(analyzer.words(EVERYDAY))

    def words(self, text: str) -> frozenset[str]:
        """Return all words of a text."""
        return frozenset(self._analyzer.words(text))

    def telling_words(self, text: str) -> frozenset[str]:
        """Return all words but stop words, small talk and single letters."""
        words = self._analyzer.words(bare_sentence(text))
        return frozenset(word for word in words if _tells(word)) - self._small_talk

    def rare_words(self, text: str) -> frozenset[str]:
        """Return the telling words that are not in everyday use: one of them identifies a text."""
        return self.rare_of(self.telling_words(text))

    def rare_of(self, telling: frozenset[str]) -> frozenset[str]:
        return telling - self._everyday

    def gist(self, text: str) -> frozenset[str]:
        """Return the words two sentences must share to say the same: the rare ones, where there are enough
        of them."""
        return self.gist_of(self.telling_words(text))

    def gist_of(self, telling: frozenset[str]) -> frozenset[str]:
        """Return the gist of these words. An identifier counts once, not with each of its pieces."""
        whole = telling - {piece for word in telling if not word.isalnum() for piece in _BETWEEN.split(word)}
        rare = self.rare_of(whole)
        return rare if len(rare) > 1 else whole


ALIKE = 0.6
LEAST_SHARED = 2


def are_alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two gists say the same: they share most words of the shorter one."""
    shared = len(first & second)
    return shared >= LEAST_SHARED and shared >= ALIKE * min(len(first), len(second))


def _tells(word: str) -> bool:
    return len(word) > 1 or word.isdigit()
