"""Turns text into index terms, for documents and questions alike. Callers pass the stemmer.

Words are folded, stop words dropped, the rest stemmed; scripts written without spaces become pairs of characters;
identifiers are kept whole beside their pieces. A term with a mark in front is not a word: `~` the beginning of a
word, `@` who said it, `?` a question.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

PREFIX_LENGTH = 4
MAX_TERM_LENGTH = 64
QUESTION = "?"
"""The text ends with a question: nearly always it only asks."""
ASKS = "?+"
"""There is a question in the text."""
_QUESTION_MARKS = ("?", "？")

_STOP_WORDS = """
    a about after again all also am an and any are as at be because been before being below between both but by can
    could d did didn do does doesn doing don done down during each ever few for from had has hasn have haven having he
    her here hers him his how i if in into is isn it its itself just ll m may me might more most must my no nor not of
    on once only or other our ours out over own re s same shall she should so some such t than that the their theirs
    them then there these they this those through to too under until up us ve very was wasn we were what when where
    which while who whom whose why will with would you your yours
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_SPEAKER = re.compile(r"\s*([A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}): ")
_ACCENTED = re.compile("[\u00c0-\u024f\u1e00-\u1eff]+")
_POSSESSIVE = re.compile(r"['’]s\b")
# Thai to Myanmar, Khmer, kana, Han, Hangul: no spaces between words, or none that help.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_PIECE = re.compile(rf"([{_UNSPACED}]+)|((?:(?![{_UNSPACED}])[^\W_])+)")
# Possessive, and never from within a word: linear on any input.
_IDENTIFIER = re.compile(r"(?<![^\W_])[^\W_]++(?:[-._/@:#+][^\W_]++)+")


def fold_text(text: str) -> str:
    """Return the text without case, width and Latin accents, which do not matter to a search."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _ACCENTED.sub(_strip_accents, folded)


def _strip_accents(match: re.Match[str]) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", match[0]) if not unicodedata.combining(c))


def _character_pairs(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


def split_speaker(text: str) -> tuple[tuple[str, ...], str]:
    """Return `(("ann", "lee"), "hello")` for `"Ann Lee: hello"`; no names where nobody is named."""
    match = _SPEAKER.match(text[:80])
    if match is None:
        return (), text
    return tuple(fold_text(match[1]).split()), text[match.end() :]


def names_speaker(text: str) -> bool:
    """Return whether it says who said it, as `split_speaker` reads it."""
    return _SPEAKER.match(text[:80]) is not None


class Analyzer:
    """`stem` maps one folded word to its stem, in whatever thread calls it; its answers are remembered for all of them,
    a vocabulary is small."""

    def __init__(self, stem: Callable[[str], str], max_remembered: int = 200_000) -> None:
        self._stem = stem
        self._stems: dict[str, str] = {}
        self._max_remembered = max_remembered

    def _stem_of(self, word: str) -> str:
        known = self._stems.get(word)
        if known is None:
            if len(self._stems) >= self._max_remembered:
                self._stems.clear()
            known = self._stems[word] = self._stem(word)[:MAX_TERM_LENGTH]
        return known

    def words(self, text: str) -> list[str]:
        """Return the plain terms of a text in order, repeated ones repeated."""
        folded = _POSSESSIVE.sub("", fold_text(text))
        terms: list[str] = []
        for unspaced, word in _PIECE.findall(folded):
            if unspaced:
                terms += _character_pairs(unspaced)
            elif word not in STOP_WORDS:
                terms.append(self._stem_of(word[:MAX_TERM_LENGTH]))
        return terms + [match[:MAX_TERM_LENGTH] for match in _IDENTIFIER.findall(folded)]

    def document_terms(self, text: str) -> Counter[str]:
        """Return everything a document can be found by. The plain words count towards its length, see
        `is_word`."""
        speakers, body = split_speaker(text)
        terms = Counter(self.words(body))
        for word, count in list(terms.items()):
            if (prefix := prefix_of(word)) is not None:
                terms[prefix] += count
        terms.update(f"@{name}" for name in speakers)
        if any(mark in body for mark in _QUESTION_MARKS):
            terms[ASKS] = 1
        if body.rstrip().endswith(_QUESTION_MARKS):
            terms[QUESTION] = 1
        return terms


def is_word(term: str) -> bool:
    return term[0] not in "~@?"


def prefix_of(word: str) -> str | None:
    """Return the term that `"education"` and `"edu…"` share; None for what is short, a number, an
    identifier or not in letters."""
    if len(word) < PREFIX_LENGTH or not word.isalpha() or _PIECE.match(word)[1]:  # type: ignore[index]
        return None
    return f"~{word[:PREFIX_LENGTH]}"


def describe_piece(piece: str, role: str, *, is_whole: bool) -> str:
    """Return a found piece as models and readers see it: with marks where it was cut, and with who said it where it
    does not say so itself."""
    text = piece if is_whole else f"[…] {piece} […]"
    return text if names_speaker(piece) else f"{role or 'memory'}: {text}"


def read_piece(text: str, start: int, end: int, role: str) -> str:
    """Return what `describe_piece` says of this span of a source; empty where it has no text there any more."""
    piece = text[start:end].strip()
    return describe_piece(piece, role, is_whole=start == 0 and end >= len(text)) if piece else ""
