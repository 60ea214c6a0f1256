"""Stop words and stemmers of languages, from libraries, and detection of the language of a text.

Words of a script that is mostly used by one language have its stemmer. Words in Latin letters have the English one, and
also that of the language that the stop words of the text indicate.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import Any

import snowballstemmer
import stopwordsiso

ENGLISH = "en"
LATIN = {
    "en": "english",
    "de": "german",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "tr": "turkish",
    "sv": "swedish",
    "da": "danish",
    "no": "norwegian",
    "fi": "finnish",
    "ro": "romanian",
    "hu": "hungarian",
    "id": "indonesian",
}
"""Languages in Latin letters, with the names of their stemmers."""
WITHOUT_STEMMER = ("pl",)
"""More languages in Latin letters in which dates are read."""
SCRIPTS = {
    "CYRILLIC": ("ru", "russian"),
    "ARABIC": ("ar", "arabic"),
    "DEVANAGARI": ("hi", "hindi"),
    "GREEK": ("el", "greek"),
    "ARMENIAN": ("hy", "armenian"),
    "TAMIL": ("ta", "tamil"),
}
"""Language and stemmer of a script, by the first word of its letters' Unicode names."""
# Thai to Myanmar, Khmer, kana, Han, Hangul: no spaces between words, or no useful ones.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u30ff"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
CAPITAL = "A-ZÀ-ÖØ-ÞА-ЯЁΑ-Ω"
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
ABOUT_A_WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{1,6}|[\u30a0-\u30ff]+|[\u3040-\u309f\u3400-\u9fff\uf900-\ufaff]{1,2}|"
    r"[^\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
"""About one word, also in scripts without spaces: six characters of Thai to Khmer, a run of katakana, two of Han."""
# U+0307 remains when `casefold` converts the Turkish capital İ.
_FOLDED = re.compile("[\u00c0-\u024f\u1e00-\u1eff\u0307]+")
# Vowel signs that Arabic and Hebrew seldom write, and the line that only stretches a word.
_OPTIONAL = re.compile("[\u0591-\u05bd\u0610-\u061a\u0640\u064b-\u065f\u0670]")


def fold_text(text: str) -> str:
    """Return the text without case, width, Latin accents and optional vowel signs, which search ignores."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if folded.isascii():
        return folded
    # `casefold` makes i of I, the capital of the Turkish dotless ı, and NFD finds no accent in ı to remove.
    return _OPTIONAL.sub("", _FOLDED.sub(_strip_accents, folded)).replace("ı", "i")


_GAP = re.compile(r"\s{3,}")


def close_gaps(text: str) -> str:
    """Return the text with one space for each long run of white space. A pattern that allows any number of spaces
    between two words would search such a run again from each of its places."""
    return _GAP.sub(" ", text)


def without_accents(text: str) -> str:
    """Return the text in NFKC form without Latin accents. Case is kept."""
    return _FOLDED.sub(_strip_accents, unicodedata.normalize("NFKC", text))


def _strip_accents(match: re.Match[str]) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", match[0]) if not unicodedata.combining(c))


_MORE_STOP_WORDS = {"hi": "क्या कब कैसे क्यों कहाँ मेरा मेरी मेरे"}
"""Question words that the library lacks."""


QUESTION_MARKS = ("?", "？", "؟")


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the folded stop words of a language, which say how something is asked or said, not what it is about."""
    words = {*stopwordsiso.stopwords(language), *_MORE_STOP_WORDS.get(language, "").split()}
    return frozenset(map(fold_text, words))


@cache
def _latin_stop_words() -> Mapping[str, tuple[str, ...]]:
    """Return, by stop word, the languages in Latin letters that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for language in (*LATIN, *WITHOUT_STEMMER):
        for word in stop_words(language):
            found[word] = (*found.get(word, ()), language)
    return found


def latin_language(words: Iterable[str]) -> str:
    """Return the language with most stop words among the folded words: the first in LATIN on a tie, English if there is
    none."""
    counts = _count_stop_words(words)
    return max(LATIN, key=counts.__getitem__)


def leading_languages(words: Iterable[str]) -> frozenset[str]:
    """Return the languages with most stop words among the folded words; empty if no word is one."""
    counts = _count_stop_words(words)
    most = max(counts.values(), default=0)
    return frozenset(language for language, count in counts.items() if count == most)


def _count_stop_words(words: Iterable[str]) -> Counter[str]:
    known = _latin_stop_words()
    return Counter(chain.from_iterable(known.get(word, ()) for word in words))


class _Stemmers(threading.local):
    """Stemmers per thread, because a stemmer stores its current word, and two threads would mix theirs."""

    def __init__(self) -> None:
        self.by_name: dict[str, Any] = {}


_stemmers = _Stemmers()


def stem_word(word: str, stemmer: str) -> str:
    """Return the stem of a folded word from the stemmer of this name."""
    known = _stemmers.by_name
    if stemmer not in known:
        known[stemmer] = snowballstemmer.stemmer(stemmer)
    stem: str = known[stemmer].stemWord(word)
    return stem


@cache
def script_of(letter: str) -> str:
    """Return the script of a letter: the first word of its Unicode name."""
    return unicodedata.name(letter, "").partition(" ")[0]


def stop_words_of(word: str, language: str) -> frozenset[str]:
    """Return the stop words of the word's script if one language stands for it, else of this language."""
    script = SCRIPTS.get(script_of(word[0]))
    return stop_words(script[0] if script else language)


def unspaced_language(run: str) -> str:
    """Return the language of a run of characters without spaces between its words."""
    if "\uac00" <= run[0] <= "\ud7af":
        return "ko"
    # Search the whole run, because Japanese has Han characters beside its kana.
    if any("\u3040" <= character <= "\u30ff" for character in run):
        return "ja"
    return "th" if "\u0e00" <= run[0] <= "\u0eff" else "zh"
