"""Turns text into index terms, for documents and questions alike.

Words are folded, the commonest dropped, the rest stemmed. Scripts without spaces become pairs of characters.
Identifiers are kept whole beside their pieces. A first character marks a term that is no word: `~` the beginning of a
word or one character of it, `%` its stem in the language of the text, `@` a speaker, `?` a question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from memory.language.languages import (
    ENGLISH,
    LATIN,
    QUESTION_MARKS,
    SCRIPTS,
    UNSPACED,
    UNSPACED_RUN,
    fold_text,
    latin_language,
    script_of,
    stem_word,
)
from memory.language.neutral_text import quote_speaker_lines

PREFIX_LENGTH = 4
MAX_TERM_LENGTH = 64
QUESTION = "?"
"""The text ends with a question mark, so it mostly only asks."""
ASKS = "?+"
"""The text contains a question mark."""

_STOP_WORDS = """
    a all an and are as at be but by can d did do does for from had has have he her his how i if in is it its ll m me my
    of on or our re s she so t that the their them there they this to ve was we were what with you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""The commonest words of English, half of all text, which no index keeps."""

_SPEAKER = re.compile(r"\s*([A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){0,2}): ")
_POSSESSIVE = re.compile(r"['’]s\b")
# Vowel signs of Indian scripts are parts of words, but not letters.
SIGNS = "\u0900-\u0963\u0966-\u0d7f"
_PIECE = re.compile(rf"([{UNSPACED}]+)|((?:(?![{UNSPACED}])(?:[^\W_]|[{SIGNS}]))+)")
# Possessive, and never from inside a word: linear on any input.
_IDENTIFIER = re.compile(r"(?<![^\W_])[^\W_]++(?:[-._/@:#+][^\W_]++)+")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_HANGUL = re.compile("[\uac00-\ud7af]")


def pairs_of(run: str) -> list[str]:
    """Return the pairs of neighbours in a run of characters; a single character as it is."""
    return [run[start : start + 2] for start in range(len(run) - 1)] or [run]


def characters_of(run: str) -> Iterator[str]:
    """Yield the terms of characters that may be a word alone: Han ones, or the first syllable in Hangul."""
    if _HANGUL.match(run):
        yield f"~{run[0]}"
    else:
        yield from (f"~{character}" for character in _HAN.findall(run))


def split_pieces(folded: str) -> list[tuple[str, str]]:
    """Return (run of characters without spaces, word) in order; one of each pair is empty."""
    return _PIECE.findall(_POSSESSIVE.sub("", folded))


def split_speaker(text: str) -> tuple[tuple[str, ...], str]:
    """Return `(("ann", "lee"), "hello")` for `"Ann Lee: hello"`; no names if the text names no speaker."""
    # The pattern does not limit the length of a name.
    match = _SPEAKER.match(text[:80])
    if match is None:
        return (), text
    return tuple(fold_text(match[1]).split()), text[match.end() :]


class Analyzer:
    """Turns texts into terms. Stems are cached for all threads, because a vocabulary is small."""

    def __init__(self, max_remembered: int = 200_000) -> None:
        self._stems: dict[tuple[str, str], str] = {}
        self._max_remembered = max_remembered

    def stem_of(self, word: str, language: str = ENGLISH) -> str:
        """Return the stem of a folded word. `language` matters only for Latin letters."""
        known = self._stems.get((word, language))
        if known is None:
            # No lock is needed, because threads that race find the same stem.
            if len(self._stems) >= self._max_remembered:
                self._stems.clear()
            script = SCRIPTS.get(script_of(word[:1]))
            stemmed = stem_word(word, script[1] if script else LATIN[language])
            known = self._stems[word, language] = stemmed[:MAX_TERM_LENGTH]
        return known

    def words(self, text: str) -> list[str]:
        """Return the plain terms of a text in order, with repetitions; whole identifiers come last."""
        folded = fold_text(text)
        return self._words_of(folded, split_pieces(folded))

    def _words_of(self, folded: str, pieces: Iterable[tuple[str, str]]) -> list[str]:
        terms: list[str] = []
        for unspaced, word in pieces:
            if unspaced:
                terms += pairs_of(unspaced)
            elif word not in STOP_WORDS:
                terms.append(self.stem_of(word[:MAX_TERM_LENGTH]))
        return terms + [match[:MAX_TERM_LENGTH] for match in _IDENTIFIER.findall(folded)]

    def language_terms(self, words: Iterable[str], language: str) -> Iterator[str]:
        """Yield the terms of the words' stems, if the language is not English."""
        if language != ENGLISH:
            yield from (f"%{self.stem_of(word[:MAX_TERM_LENGTH], language)}" for word in words)

    def document_terms(self, text: str) -> Counter[str]:
        """Return all terms by which a document can be found, with counts. Only plain words count towards its length
        (`is_word`)."""
        speakers, body = split_speaker(text)
        folded = fold_text(body)
        pieces = split_pieces(folded)
        terms = Counter(self._words_of(folded, pieces))
        # A list, because the loop adds prefixes to the counter.
        for word, count in list(terms.items()):
            if (prefix := prefix_of(word)) is not None:
                terms[prefix] += count
        for run, _ in pieces:
            if run:
                terms.update(characters_of(run))
        latin = [word for _, word in pieces if is_letters(word)]
        terms.update(self.language_terms(latin, latin_language(latin)))
        terms.update(f"@{name}" for name in speakers)
        if any(mark in body for mark in QUESTION_MARKS):
            terms[ASKS] = 1
        if body.rstrip().endswith(QUESTION_MARKS):
            terms[QUESTION] = 1
        return terms


def is_letters(word: str) -> bool:
    """Return whether a piece is a word in plain Latin letters."""
    return word.isascii() and word.isalpha()


def is_word(term: str) -> bool:
    return term[0] not in "~%@?"


def prefix_of(word: str) -> str | None:
    """Return the term that `"education"` and `"educated"` share; None for short words, numbers, identifiers and scripts
    without spaces."""
    if (
        len(word) < PREFIX_LENGTH
        or not word[0].isalpha()
        or not _PIECE.fullmatch(word)
        or UNSPACED_RUN.match(word)
    ):
        return None
    return None if any(character.isdigit() for character in word) else f"~{word[:PREFIX_LENGTH]}"


def describe_piece(piece: str, role: str, *, is_whole: bool) -> str:
    """Return a found piece as models and readers see it: with its speaker, lines that imitate another speaker quoted,
    and marks where it was cut."""
    return quote_speaker_lines(f"{role or 'memory'}: {piece if is_whole else f'[…] {piece} […]'}")


def read_piece(text: str, start: int, end: int, role: str) -> str:
    """Return `describe_piece` for this span of a source; empty if the source has no text there any more."""
    piece = text[start:end].strip()
    return describe_piece(piece, role, is_whole=start == 0 and end >= len(text)) if piece else ""
