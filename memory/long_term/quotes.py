"""Finds texts that repeat others: a whole sentence, or an identifier."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memory.language.sentences import Vocabulary, split_sentences, strip_list_mark
from memory.summaries.extractive import STRONG_FACT, find_facts

LEAST_WORDS = 2
LEAST_FACT_CHARS = 3
_IDENTIFIER = re.compile(r"[@/_]|\d.*[A-Za-z]|[A-Za-z].*\d|(?:\d\D?){5}")
"""An address, a path, letters with digits, or five digits: hardly ever equal by chance."""


class Quotes:
    """The sentences and identifiers of some texts."""

    def __init__(self, said: Iterable[str], vocabulary: Vocabulary, *, answered: Iterable[str] = ()) -> None:
        """Read all sentences of `said`, but only those with facts of `answered`, because many answers share their
        closing lines."""
        self._vocabulary = vocabulary
        self._sentences: set[str] = set()
        self._facts: set[str] = set()
        for texts, are_telling in ((said, True), (answered, False)):
            # Read each sentence once, because several texts often contain it.
            for sentence in dict.fromkeys(one for text in texts for one in split_sentences(text)):
                self._add(sentence, are_telling)
        words = {fact for fact in self._facts if _WORD.fullmatch(fact)}
        self._words = {_fold_letters(fact) for fact in words}
        self._pattern = _any_of(self._facts - words)

    def _add(self, sentence: str, is_telling: bool) -> None:
        facts = find_facts(sentence).items()
        strong = {fact for fact, weight in facts if weight >= STRONG_FACT and len(fact) >= LEAST_FACT_CHARS}
        self._facts |= {fact for fact in strong if _IDENTIFIER.search(fact)}
        if len(self._vocabulary.content_words(sentence)) >= LEAST_WORDS and (is_telling or strong):
            self._sentences.add(fold_sentence(sentence))

    def __bool__(self) -> bool:
        return bool(self._sentences or self._facts)

    def word_sets(self) -> Iterator[frozenset[str]]:
        """Yield the words of each quote. A text that repeats a quote has all of its words."""
        for quote in (*self._sentences, *self._facts):
            if words := self._vocabulary.words(quote):
                yield words

    def are_in(self, text: str) -> bool:
        """Return whether the text contains a quote."""
        if self._words and not self._words.isdisjoint(_WORD.findall(_fold_letters(text))):
            return True
        if self._pattern.search(text):
            return True
        folded = " ".join(text.casefold().split())
        return any(_is_whole(sentence, folded) for sentence in self._sentences)

    def take_out(self, text: str) -> str:
        """Return the text without the sentences that contain a quote."""
        pieces = split_sentences(text)
        kept = [piece for piece in pieces if not self.are_in(piece)]
        return text if len(kept) == len(pieces) else "".join(kept).strip()


def fold_sentence(sentence: str) -> str:
    """Return the sentence in the form that is compared: without list mark, speaker, case and final punctuation."""
    return " ".join(strip_list_mark(sentence).casefold().split()).rstrip(" .!?…。！？।")


_PARTED = re.compile(
    r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""A letter or digit of a script that separates its words."""


def _is_whole(sentence: str, text: str) -> bool:
    """Return whether the text contains the sentence as whole words: "I like tea" is not in "I like teaching"."""
    at = text.find(sentence)
    while at >= 0:
        end = at + len(sentence)
        if not (_is_one_word(text[max(0, at - 1) : at + 1]) or _is_one_word(text[end - 1 : end + 1])):
            return True
        at = text.find(sentence, at + 1)
    return False


def _is_one_word(pair: str) -> bool:
    """Return whether two neighbouring characters belong to the same word."""
    return len(pair) == 2 and all(map(_PARTED.match, pair))


_WORD = re.compile(r"[A-Za-z0-9_]+")
"""Facts of one word, often thousands, are looked up in a set; the others form one pattern."""
# A case-insensitive pattern matches these with i and s, but `lower` does not change them.
_LIKE_LATIN = str.maketrans("İıſ", "iis")


def _fold_letters(text: str) -> str:
    """Return the text as a case-insensitive pattern compares it."""
    return text.translate(_LIKE_LATIN).lower()


def _any_of(facts: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds each fact as a whole: INV-20 is not in INV-2041. Only ASCII letters and digits
    continue a word, because some scripts have no spaces."""
    longest_first = sorted(facts, key=lambda fact: (-len(fact), fact))
    return re.compile(
        rf"(?<![A-Za-z0-9_])(?:{'|'.join(map(re.escape, longest_first))})(?![A-Za-z0-9_])"
        if longest_first
        # An empty alternation would match everywhere.
        else r"(?!)",
        re.IGNORECASE,
    )
