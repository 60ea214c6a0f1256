"""Names of months, weekdays and days such as "yesterday" in the languages that questions are asked in.

They come from the data of the library `dateparser`, without its code: a search with it takes 1 to 30 ms and reads
"4月30号" as a time of day, while looking up the words of a question takes a tenth of a millisecond.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, product
from pathlib import Path
from typing import Any

from memory.language.languages import UNSPACED_RUN, fold_text, leading_languages, script_of, stem_word

_LANGUAGE_CODES = "en de es fr it pt nl tr ru ar hi zh ja ko pl sv uk th"
LANGUAGES = tuple(_LANGUAGE_CODES.split())
_MONTH_NAMES = "january february march april may june july august september october november december"
MONTHS = tuple(_MONTH_NAMES.split())
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
UNITS = ("day", "week", "month", "year")
_BETWEEN_WORDS = re.compile(r"[-.'’]")
_AGO = re.compile(r"(\d+) (day|week|month|year) ago")
BEGINNING = 4
"""First letters that all forms of a word share."""
_OTHER_FORMS = 2
"""A name is another form of the longest one if it is at most this many letters shorter: среда, среду."""
_COUNT = re.compile(r"\(\\d.*\)")
"""The expression for a number in the library's expressions."""
_FORMS = re.compile(r"(\w+)\(([\w|]+)\)")
_COUNTS = {
    1: "un um een bir एक",
    2: "dos due duas dois twee iki दो",
    3: "tres tre trois drie uc ثلاثة تلاتة तीन",
    4: "cuatro quattro quatro vier dort أربعة चार",
    5: "cinco cinque vijf bes خمسة पांच पाँच",
    6: "seis sei zes alti ستة छह",
}
"""Small numbers that the library lacks. They count only in expressions such as "two weeks ago"."""
# The Russian stem of May has two letters, too few for `month_of` to look it up.
_MORE_MONTHS = {"мае": 5}
_MORE_UNITS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "de": {"month": ("monats",), "year": ("jahres",)},
    "pl": {"month": ("miesiaca",), "year": ("roku",)},
    "hi": {"week": ("हफ्ता", "हफ्ते", "हफ़्ते")},
    "zh": {"week": ("个星期", "個星期", "个礼拜", "個禮拜")},
}
_MORE_LAST = frozenset(("past", "verg", "afge", "посл", "ulti", "pass", "पिछल"))
"""Beginnings of words for "last" that the library does not use with a week."""
_CASES = re.compile(r"[dt][ae]n?")
"""Turkish endings for "in" and "from": "ekimde", "marttan"."""
LEAST_LETTERS = 3
"""Shorter names are abbreviations, and words of other languages: `a` is a year, `m` a month."""


@dataclass(frozen=True, slots=True)
class DateNames:
    """Dates by folded name: `months`, and in `past` the `(count, unit)` that a name lies back. `ago` has the unit by
    the text before a count and the text after it, `numbers` the words for small counts. `units` are those that a word
    names, each with the beginnings of words for "last" in its language. `weekdays` count from Monday; those in
    `short_weekdays` are also other words. `last` and `next` are beginnings of words that say which week, `coming` are
    names of next week. `spoken_in` has the languages of each name in `months` and `past`."""

    months: Mapping[str, int]
    past: Mapping[str, tuple[int, str]]
    ago: Mapping[str, Mapping[str, str]]
    numbers: Mapping[str, str]
    units: Mapping[str, list[tuple[str, frozenset[str]]]]
    weekdays: Mapping[str, int]
    short_weekdays: frozenset[str]
    last: frozenset[str]
    next: frozenset[str]
    coming: tuple[str, ...]
    spoken_in: Mapping[str, frozenset[str]]


@cache
def date_names() -> DateNames:
    """Return the names of all languages together."""
    months = dict(_MORE_MONTHS)
    past: dict[str, tuple[int, str]] = {}
    ago: dict[str, dict[str, str]] = {}
    numbers = {word: str(count) for count, words in _COUNTS.items() for word in words.split()}
    units: dict[str, list[tuple[str, frozenset[str]]]] = {}
    weekdays: dict[str, int] = {}
    short: set[str] = set()
    spoken_in: dict[str, frozenset[str]] = {}
    weeks: dict[str, list[str]] = {key: [] for key in ("1 week ago", "in 1 week", "0 week ago")}
    for language in LANGUAGES:
        data = _data_of(language)
        full, shorter = _weekdays(data)
        weekdays |= {**shorter, **full}
        short |= shorter.keys()
        for key, found in weeks.items():
            found += _names(data.get("relative-type", {}).get(key, ()))
        of_months = {
            name: number
            for number, month in enumerate(MONTHS, start=1)
            for name in (*_local_names(data, month), *_month_names(data.get(month, ())))
        }
        of_past = {
            name: (int(match[1]), match[2])
            for key, names in data.get("relative-type", {}).items()
            if (match := _AGO.fullmatch(key))
            for name in _names(names)
        }
        months |= of_months
        past |= of_past
        for name in (*of_months, *of_past):
            spoken_in[name] = spoken_in.get(name, frozenset()) | {language}
        for unit in UNITS:
            words = (*data.get(unit, ()), *_MORE_UNITS.get(language, {}).get(unit, ()))
            patterns = data.get("relative-type-regex", {}).get(f"\\1 {unit} ago", ())
            counted = _counted_ago(words, () if language == "en" else data.get("ago") or ())
            for before, behind in (*map(_around_count, patterns), *counted):
                ago.setdefault(before, {})[behind] = unit
            for word in {*map(fold_text, words)}:
                # A single letter is a word of another language.
                if len(word) > 1:
                    units.setdefault(word, []).append((unit, _last_of(data)))
        numbers |= dict(_numbers(data))
    # In the order of the keys of `weeks`.
    last, coming, this = (_beginnings(names) for names in weeks.values())
    return DateNames(
        months,
        past,
        ago,
        numbers,
        units,
        weekdays,
        frozenset(short),
        # A beginning that two of them share, e.g. that of "week", distinguishes none.
        last=last - coming - this,
        next=coming - last - this,
        coming=tuple(weeks["in 1 week"]),
        spoken_in=spoken_in,
    )


def month_of(word: str) -> int | None:
    """Return the month that a folded word names, including the cases of Russian and Turkish; None if it names none."""
    months = date_names().months
    if word in months or len(word) <= LEAST_LETTERS:
        return months.get(word)
    if script_of(word[0]) == "CYRILLIC":
        return _stemmed_months().get(stem_word(word, "russian"))
    return months.get(_without_case(word))


def _without_case(word: str) -> str:
    """Return the month of a Turkish word in a case, "ekim" for "ekimde"; other words unchanged."""
    months = date_names().months
    if word in months:
        return word
    return next((word[:at] for at in (-2, -3) if word[:at] in months and _CASES.fullmatch(word[at:])), word)


def languages_of(word: str) -> frozenset[str]:
    """Return the languages in which a folded word is a month, or a name such as "yesterday"."""
    return date_names().spoken_in.get(_without_case(word), frozenset())


def is_of_another_language(word: str, words: Iterable[str]) -> bool:
    """Return whether the other words are of languages in which this word is no date: "hier" means yesterday only beside
    French words."""
    languages = languages_of(word)
    # Only languages in Latin letters share words.
    others = leading_languages(other for other in words if other.isalpha() and not languages_of(other))
    return word.isascii() and bool(languages and others) and languages.isdisjoint(others)


@cache
def _stemmed_months() -> Mapping[str, int]:
    return {
        stem: month
        for name, month in date_names().months.items()
        if len(stem := stem_word(name, "russian")) > LEAST_LETTERS and script_of(name[0]) == "CYRILLIC"
    }


def _last_of(data: Mapping[str, Any]) -> frozenset[str]:
    """Return the beginnings of a language's words beside a unit that mean "last"."""
    named = data.get("relative-type", {})
    last = [*chain.from_iterable(_names(named.get(f"1 {unit} ago", ())) for unit in UNITS[1:])]
    others = [*chain.from_iterable(data.get(unit, ()) for unit in UNITS)]
    this = [*chain.from_iterable(named.get(f"0 {unit} ago", ()) for unit in UNITS)]
    return _beginnings(last) - _beginnings(map(fold_text, (*others, *this))) | _MORE_LAST


def _around_count(pattern: str) -> tuple[str, str]:
    """Return the text before and after the count in an expression of the library: "vor (\\d+) tagen"."""
    # Replace the count by a line end, which no expression contains.
    before, _, behind = _COUNT.sub("\n", fold_text(pattern)).partition("\n")
    return before, behind


def _counted_ago(units: Iterable[str], ago: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the text before and after the count for the library's units and words for "ago", in either order."""
    for unit, word in product(map(fold_text, units), map(fold_text, ago)):
        if UNSPACED_RUN.search(unit):
            yield "", f"{unit}{word}"
            yield "", f" {unit}{word}"
        else:
            yield "", f" {unit} {word}"
            yield f"{word} ", f" {unit}"


def _data_of(language: str) -> dict[str, Any]:
    # Load the file itself, because an import would run the whole package first.
    package = importlib.util.find_spec("dateparser")
    assert package is not None
    assert package.submodule_search_locations
    folder = Path(package.submodule_search_locations[0])
    path = folder / "data" / "date_translation_data" / f"{language}.py"
    spec = importlib.util.spec_from_file_location(f"dateparser_names_{language}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data: dict[str, Any] = module.info
    return data


def _names(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        folded = " ".join(_BETWEEN_WORDS.sub(" ", fold_text(name)).split())
        # In other scripts a whole word may have one or two letters.
        if len(folded) >= LEAST_LETTERS or not folded.isascii():
            yield folded


def _month_names(names: Iterable[str]) -> Iterator[str]:
    """Yield the full names, and abbreviations in English and in other scripts than Latin: "ago" and "set" are
    abbreviated months in other languages."""
    known = list(_names(names))
    takes_short = not frozenset(MONTHS).isdisjoint(known)
    yield from (
        name
        for name in known
        if len(name) > LEAST_LETTERS or takes_short or not name.isascii() or name == max(known, key=len)
    )


def _local_names(data: Mapping[str, Any], month: str) -> Iterator[str]:
    """Yield the names of a month that only some countries use: each part of the Arab world has its own."""
    for country in data.get("locale_specific", {}).values():
        yield from (name for name in _names(country.get(month, ())) if not name.isascii())


def _weekdays(data: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, int]]:
    """Return (full names, shorter ones), each with its number from Monday on. Abbreviations are left out."""
    full: dict[str, int] = {}
    shorter: dict[str, int] = {}
    for number, weekday in enumerate(WEEKDAYS):
        # Names in brackets are abbreviations, as Japanese calendars write them: (月).
        names = [name for name in _names(data.get(weekday, ())) if not name.startswith("(")]
        longest = max(map(len, names), default=0)
        for name in names:
            is_full = len(name) >= longest - _OTHER_FORMS
            if len(name) > LEAST_LETTERS or (is_full and len(name) > 1 and not name.isascii()):
                (full if is_full else shorter)[name] = number
    return full, shorter


def _beginnings(names: Iterable[str]) -> frozenset[str]:
    """Return the beginnings of the words of these names, so that "letzte" and "letzten" are equal."""
    words = [word for name in names for word in name.split() if not UNSPACED_RUN.search(word)]
    return frozenset(word[:BEGINNING] for word in words if len(word) >= BEGINNING)


def _numbers(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the number words among the library's simplifications, some of which have their forms in brackets."""
    for simplification in data.get("simplifications", ()):
        for words, meaning in simplification.items():
            forms = _FORMS.fullmatch(words)
            for word in (forms[1] + ending for ending in forms[2].split("|")) if forms else (words,):
                if meaning.isdecimal() and word.isalpha() and len(word) >= LEAST_LETTERS:
                    yield fold_text(word), meaning
