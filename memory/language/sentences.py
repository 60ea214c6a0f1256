"""Splits texts into sentences, which joined give the text, and finds the words that distinguish sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from sentencex import segment

from memory.language.date_names import LEAST_LETTERS, month_of
from memory.language.languages import (
    ENGLISH,
    UNSPACED,
    UNSPACED_RUN,
    fold_text,
    latin_language,
    stop_words,
    unspaced_language,
)
from memory.language.small_talk import EVERYDAY, SMALL_TALK
from memory.language.terms import Analyzer

_END = re.compile(r"\n+|(?<=[.!?…؟।])[\"'”’)\]»]*[ \t]+|(?<=[。！？])[」』”’）]*")
_FRAME = re.compile(r"^(?:[-*•]|\d+\.|(?:User|Assistant|Tool|System|user|assistant|tool|memory):|\s)+")
_BETWEEN = re.compile(r"[\W_]+")

_LAST_WORD = re.compile(
    rf"(?:^|[\s(\[\"“‘«/-]|(?<!\w)'|(?<=[{UNSPACED}])|['’](?=\w{{3}})|(?<=[lL])['’](?=\w\w))"
    rf"((?:(?![{UNSPACED}])[^\W_]|[\u0900-\u0963])+(?:\.[^\W_]+)*)\.$"
)
"""Also after an apostrophe, as in "l'avv." and "l'on."; fewer letters there are the end of a word, as in "don't"."""
LONGEST_ABBREVIATION = 6
"""Except for streets, because a name and "str." are one word in German."""
_BEFORE = 40
"""Characters before a full stop that show whether it belongs to an abbreviation."""
_ORDINAL = re.compile(
    r"(?:^|(?:^|\s)(?:am|vom|zum|der|den|dem|des|bis|ab|seit|beim|und|im)\s)\s*(?:[12]?\d|3[01])\.$",
    re.IGNORECASE,
)
"""3. Mai, and the number before an item of a list."""
_COUNTED_BY_DOT = frozenset(["da", "de", "fi", "hu", "no", "tr"])
"""Languages that write "the third" as "3." with a full stop."""
_NUMBERED_WORDS = """
    no nr n nº num núm art fig vol ch sec cap kap abs pág pag blz tab tel approx стр рис гл корп
"""
_NUMBERED = frozenset(_NUMBERED_WORDS.split())
"""Abbreviations before a number, but words before anything else."""
_TITLE_WORDS = """
    mme mlle mevr mw dhr ir dra sra exa exma exmo profa cía sig hr mr mrs ms st sr jr av bd ul fa doç yrd
    uzm öğr gör cad sok mah пл наб доц им des pbro pte vs cf eg ie
"""
_TITLES = frozenset(_TITLE_WORDS.split())
"""Abbreviations that the library does not know in every language, or that are also stop words."""
_ALSO_WORDS = frozenset(["им", "fa", "gör"])
"""Abbreviations before a name. As "them", "ago" and "see" they end a sentence if the next begins with a stop word."""
_MARKS = {
    "de": frozenset(["der", "die", "das", "und", "ist", "nicht", "ich"]),
    "es": frozenset(["el", "los", "es", "una", "que", "en", "vive"]),
    "fr": frozenset(["le", "les", "et", "est", "je", "une", "des"]),
    "it": frozenset(["il", "gli", "è", "che", "sono", "una", "qui"]),
    "nl": frozenset(["het", "een", "ik", "en", "van", "niet"]),
    "pt": frozenset(["o", "os", "é", "não", "uma", "que"]),
    "tr": frozenset(["bir", "ve", "bu", "için", "ben"]),
}
"""Words that show which abbreviations a text may use."""
_TURKISH = re.compile("[ğışİ]")
_ELISION = re.compile(r"\b[^\W\d_]{1,5}['’](?=\w{3})|[lL]['’](?=\w\w)")
"""A word that lost its end before the next, as in "l'avv."; English has fewer letters after an apostrophe."""
_CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
_WITHOUT_VOWEL = re.compile(r"(?:[BCDFGHJKLMNPQRSTVWXZ][bcdfghjklmnpqrstvwxz]+){1,2}|([A-Z])\1")
"""No words in any language: "Pr.", "Sgt.", "MwSt.", "EE. UU."."""
_LETTER_BEFORE = re.compile(r"\b[^\W\d_]\. ?[^\W\d_]\.$")
"""Several single letters, as in "z. b." and "т. е."."""
_ENDS_WITH_YEAR = re.compile(r"\d{4} г\.$")
_DEVANAGARI = re.compile("[\u0900-\u0963]{1,4}")
_ARABIC_LETTERS = re.compile(r"[\u0620-\u064a](?:\.[\u0620-\u064a])*")
"""An Arabic title is abbreviated to its first letter, or to those of two words."""
_YEAR_FIRST = re.compile(r"\d{4}\. (?=(?:[1-9]|1[0-2])\. (?:[1-9]|[12]\d|3[01])\.)")
_MONTH_ENDS = re.compile(r"\b\d{4}\. \d{1,2}\.$")
_DATE_ENDS = re.compile(r"\b\d{4}\. \d{1,2}\. \d{1,2}\.$")
"""2026. 5. 3., as Korean and Hungarian write dates."""
_MONTH = re.compile(r"(?:^|\s)\d{1,2}\. \d{1,2}\.$")
_DAY_AND_MONTH = re.compile(r"(?:[1-9]|[12]\d|3[01])\. (?=(?:[1-9]|1[0-2])\.(?:\s|$))")
_WORD = re.compile(r"[^\W\d_]+")
_CANNOT = re.compile(r"\bcan['’]t\b", re.IGNORECASE)
_DENYING_SYLLABLES = frozenset(["안", "못"])
"""Korean words of one syllable that negate a sentence."""
_DENIALS = """
    not cannot never no don doesn didn isn aren wasn weren won wouldn couldn hasn haven nicht kein keine keinen keinem
    keiner nie niemals ne pas jamais aucun aucune nunca non mai nao niet geen nooit nigdy inte ikke ej nem ei tidak
    bukan degil yok asla не нет никогда لا لم لن ليس ليست नहीं मत δεν δε μην இல்லை
"""
_DENYING_CHARACTER = re.compile("[不没沒别別勿無无非未]")
_READ_FOR_LANGUAGE = 2_000


def split_sentences(text: str) -> list[str]:
    """Return the sentences, each with the white space that follows it."""
    return list(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    start = last = 0
    languages: tuple[str, ...] = ()
    is_blank = True
    for match in _END.finditer(text):
        # Blank text is no sentence, so it goes with the next one.
        is_blank = is_blank and not text[last : match.end()].strip()
        last = match.end()
        if is_blank:
            continue
        if word := _abbreviation_before(text, match):
            # Detect them once, and only for texts with such a word.
            languages = languages or _languages_of(text)
            if _is_abbreviated(word, text, match, languages):
                continue
        yield text[start:last]
        start, is_blank = last, True
    if start < len(text):
        yield text[start:]


def _abbreviation_before(text: str, end: re.Match[str]) -> str:
    """Return the word before a full stop that may end an abbreviation, else an empty string."""
    if end[0].startswith("\n") or text[end.start() - 1] != ".":
        return ""
    word = _LAST_WORD.search(text, max(0, end.start() - _BEFORE), end.start())
    is_short = word is not None and (len(word[1]) <= LONGEST_ABBREVIATION or word[1].endswith("str"))
    return word[1] if word and is_short else ""


def _is_abbreviated(word: str, text: str, end: re.Match[str], languages: tuple[str, ...]) -> bool:
    """Return whether the sentence continues after the word and its full stop."""
    following = text[end.end() : end.end() + 1]
    if word.isdigit():
        return _counts(word, text, end, languages)
    if word.casefold().endswith("str"):
        return following.isdigit() or _next_word(text, end.end()).casefold() in _NUMBERED
    if word.casefold() in _NUMBERED:
        return following.isdigit()
    if _DEVANAGARI.fullmatch(word):
        # Hindi sentences mostly end with a danda; those with a full stop end with a verb.
        return word not in stop_words("hi") and fold_text(word) not in stop_words("hi")
    before = text[max(0, end.start() - _BEFORE) : end.start()]
    if _ENDS_WITH_YEAR.search(before) and following.isupper():
        return False
    if word in _ALSO_WORDS and _languages_using(_next_word(text, end.end()), languages):
        return False
    if word.casefold() in _TITLES or _ARABIC_LETTERS.fullmatch(word) or _WITHOUT_VOWEL.fullmatch(word):
        return True
    if following.islower() and ("." in word or _LETTER_BEFORE.search(before)):
        return True
    if following.isupper() and word.islower() and len(word) > 1:
        # The library reads "me", "ok", "bien" and "mich" as abbreviations, some of them in English only.
        using = _languages_using(word, languages)
        languages = tuple(one for one in languages if one not in using and (one != ENGLISH or not using))
    return any(_is_abbreviation(language, word, following.isdigit()) for language in languages)


def _counts(word: str, text: str, end: re.Match[str], languages: tuple[str, ...]) -> bool:
    """Return whether a number with a full stop is part of a date, or an ordinal: "3. Mai", "3. katta"."""
    start, following = end.start() - len(word) - 1, text[end.end() : end.end() + 1]
    before = text[max(text.rfind("\n", 0, end.start()) + 1, end.start() - _BEFORE) : end.start()]
    if _DATE_ENDS.search(before) or _YEAR_FIRST.match(text, start) or _DAY_AND_MONTH.match(text, start):
        return True
    if following.isdigit():
        return _MONTH_ENDS.search(before) is not None
    if following.islower():
        says_which = len(word) < 3 and not _COUNTED_BY_DOT.isdisjoint(languages)
        if says_which or _MONTH.search(before):
            return True
    return _names_month(text, end.end()) or (following.isalpha() and _ORDINAL.search(before) is not None)


def _languages_using(word: str, languages: tuple[str, ...]) -> set[str]:
    """Return those of the languages in which the word is a stop word."""
    return {language for language in languages if fold_text(word) in stop_words(language)}


def _next_word(text: str, start: int) -> str:
    word = _WORD.match(text, start)
    return word[0] if word else ""


def _names_month(text: str, start: int) -> bool:
    word = _next_word(text, start)
    is_long = len(word) > LEAST_LETTERS or word == "Mai"
    return is_long and word[0].isupper() and bool(month_of(fold_text(word)))


@lru_cache(maxsize=10_000)
def _is_abbreviation(language: str, word: str, is_before_number: bool) -> bool:
    """Return whether the library continues the sentence after the word. Test with a capital, because the library always
    continues before a small letter, and not everybody writes capitals."""
    probe = f"Is {word}. "
    return not any(
        piece == probe for piece in segment(language, f"{probe}{'5' if is_before_number else 'Anna'} is")
    )


def _languages_of(text: str) -> tuple[str, ...]:
    """Return English and the languages whose words the text contains most."""
    begin = text[:_READ_FOR_LANGUAGE]
    words = set(_WORD.findall(begin.casefold()))
    counts = {language: len(words & marks) for language, marks in _MARKS.items()}
    most = max(counts.values())
    found = tuple(language for language, count in counts.items() if count == most) if most else ()
    if _TURKISH.search(begin):
        found = ("tr",)
    elif len(found) != 1:
        likely = latin_language(map(fold_text, words))
        found = (likely,) if likely in found or not found else found
    if _ELISION.search(begin):
        found = (*dict.fromkeys((*found, "fr", "it")),)
    return ("en", *found, "ru") if _CYRILLIC.search(begin) else ("en", *found)


def strip_list_mark(sentence: str) -> str:
    """Return the sentence without a list mark or speaker in front of it."""
    return _FRAME.sub("", sentence).strip()


# Per task or thread, because all share the vocabulary.
_known_words: ContextVar[dict[str, frozenset[str]] | None] = ContextVar("known_words", default=None)


class Vocabulary:
    """The words that distinguish sentences, stemmed like those of the search index."""

    def __init__(self, analyzer: Analyzer) -> None:
        self._analyzer = analyzer
        self._small_talk = frozenset(analyzer.words(" ".join(SMALL_TALK)))
        self._everyday = frozenset(analyzer.words(EVERYDAY))
        self._denials = frozenset(analyzer.words(_DENIALS)) | _DENYING_SYLLABLES

    def words(self, text: str) -> frozenset[str]:
        """Return all words of a text."""
        return frozenset(self._analyzer.words(text))

    def content_words(self, text: str) -> frozenset[str]:
        """Return all words but stop words, small talk and single letters. Words that negate a sentence are included."""
        bare, known = strip_list_mark(text), _known_words.get()
        if known is None or bare not in known:
            # Both pieces of "can't" are stop words, so that it would equal "can".
            words = self._analyzer.words(_CANNOT.sub("cannot", bare))
            telling = frozenset(word for word in words if _tells(word)) - self._small_talk
            if known is None:
                return telling
            known[bare] = telling
        return known[bare]

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Cache the telling words of texts inside the block, where a text is compared in several ways."""
        before = _known_words.set({})
        try:
            yield
        finally:
            _known_words.reset(before)

    def rare_words(self, text: str) -> frozenset[str]:
        """Return the telling words that are not in everyday use: one of them identifies a text."""
        return self.rare_of(self.content_words(text))

    def rare_of(self, telling: frozenset[str]) -> frozenset[str]:
        return telling - self._everyday

    def content_words_without_stops(self, text: str) -> frozenset[str]:
        """Return the rare words without stop words of the text's language, if any remain. Chinese and Japanese pairs
        with a stop character are left out as well, because they are hardly ever a word."""
        telling = self.content_words(text)
        rare = self.rare_of(telling) or telling
        rare = frozenset(word for word in rare if not _has_stop_character(word)) or rare
        words = [fold_text(word) for word in _WORD.findall(text)]
        language = latin_language(words)
        stops = stop_words(language) if language != ENGLISH else frozenset[str]()
        return rare - self.words(" ".join(word for word in words if word in stops)) or rare

    def denials_in(self, words: frozenset[str]) -> frozenset[str]:
        """Return those of the words that negate a sentence. A verb that is negated by its ending, as in Turkish and
        Japanese, is a different word."""
        return (words & self._denials) | {word for word in words if _DENYING_CHARACTER.search(word)}

    def gist(self, text: str) -> frozenset[str]:
        """Return the words that two sentences must share to say the same: the rare ones, if there are at least two. An
        identifier counts once, without its pieces."""
        telling = self.content_words(text)
        whole = telling - {piece for word in telling if not word.isalnum() for piece in _BETWEEN.split(word)}
        rare = self.rare_of(whole)
        return rare if len(rare) > 1 else whole


ALIKE = 0.6
LEAST_SHARED = 2


def are_alike(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two gists say the same: they share most words of the shorter one."""
    return share_enough(len(first & second), len(first), len(second))


def share_enough(shared: int, first: int, second: int) -> bool:
    """Return whether gists of these sizes that share this many words say the same."""
    return shared >= LEAST_SHARED and shared >= ALIKE * min(first, second)


def _has_stop_character(word: str) -> bool:
    if not UNSPACED_RUN.fullmatch(word) or (language := unspaced_language(word)) == "ko":
        return False
    stops = stop_words(language)
    return any(character in stops or "\u3040" <= character <= "\u309f" for character in word)


def _tells(word: str) -> bool:
    return len(word) > 1 or word.isdigit() or word in _DENYING_SYLLABLES
