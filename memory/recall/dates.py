"""Reads the dates that a question names, as spans of days with weights. The caller supplies today's date."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache

from memory.language.date_names import (
    BEGINNING,
    MONTHS,
    date_names,
    is_of_another_language,
    languages_of,
    month_of,
)
from memory.language.languages import ENGLISH, fold_text, latin_language, without_accents
from memory.recall.date_spans import LAST_YEAR, DateSpan, day_or_none, month_span, spans_around, year_span
from memory.recall.relative_dates import TOKEN, find_relative

YEARS_BACK = 30
"""Years that are searched for a month or a day without a year."""

_YEAR_FIRST = re.compile(r"(?<![\d./-])(\d{4})([-/.])\s?(\d{1,2})\2\s?(\d{1,2})(?!\d)")
_YEAR_LAST = re.compile(r"(?<![\d./-])(\d{1,2})([-/])(\d{1,2})\2(\d{4})(?![\d/-])")
_DOTTED = re.compile(r"(?<![\w.])(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}|\d{2})\b)?(?!\d|\.\d)")
_BEFORE_DOTTED = re.compile(
    r"(?<!\w)(?:am|vom|bis|zum|den|dem|der|ab|seit|op|van|tot|sinds|le|du|au|el|del|dal|il|al|em|w|z|od|do|dnia|с|до|от|по"
    r"|den|fra|til|fran|on|from|since|until|of|by)\s+$"
)
"""Words before a day without a year that ends the text. Without one of them, "Postgres 16.2." is no date."""
_CJK = re.compile(
    r"(?:(\d{4})\s*[年년])?\s*(?:(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日号號일])?)|(\d{4})\s*[年년]"
)
_CJK_TO_DAY = re.compile(r"\s*\S{1,2}?\s*(\d{1,2})\s*[日号號일]")
_CJK_NUMBER = re.compile(
    r"(?:[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九])"
    r"(?=\s*[个個]?(?:[月日号號天周週年]|星期|礼拜|禮拜))"
)
_CJK_YEAR = re.compile(r"[〇零一二三四五六七八九]{4}(?=\s*年)")
_CJK_DIGITS = "〇一二三四五六七八九"
_KOREAN_NUMBER = "[이삼]?십[일이삼사오육칠팔구]?|[일이삼사오육칠팔구]"
_KOREAN_DATE = re.compile(rf"(?<![가-힣])(시|유|{_KOREAN_NUMBER})월\s*({_KOREAN_NUMBER})일")
_KOREAN_DAYS_AGO = re.compile(r"(?<![가-힣])([삼사오육칠팔구십])\s*일\s*전")
_KOREAN_MONTHS = {"유": 6, "시": 10}
"""Months that are written as they are spoken: 유월, 시월."""
_KOREAN_DIGITS = " 일이삼사오육칠팔구"
_ENGLISH = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
"""Days only if "of" follows: "my second May" names none."""
_GERMAN = "ersten zweiten dritten vierten funften sechsten siebten achten neunten zehnten elften zwolften"
_FIRST = "primero primo primeiro premier"
_DAY_IN_WORDS = re.compile(r"(?<!\w)([^\W\d_]{3,})( (?:of |de |di )?)(?=([^\W\d_]+))")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_FILLERS = 2
"""At most this many short words may be between a day and its month: "16th of March", "3 de octubre"."""
_FILLER_LETTERS = 3
_LEAST_MONTH_LETTERS = 4
"""A shorter month in Latin letters may be another word if it has no day: "mar", "may", "set"."""
_GAP_CHARS = 14
"""Two dates at most this far apart are the ends of a span: "from March to May", "3 Ekim'den 5 Ekim'e"."""
_MOST_DAYS = 31
_TO = re.compile(r"\s*(?:[-–—~〜]|to|and|until|till|through)\s*")
"""Connects two days after their month: "March 3 at 5" names only one."""


@dataclass(frozen=True, slots=True)
class Dates:
    """`spans` are certain. `days` has the candidates for each day or span of days: the first on which something was
    said counts. Candidates of a date without a year are ordered latest first."""

    spans: tuple[DateSpan, ...] = ()
    days: tuple[tuple[DateSpan, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.spans or self.days)

    def resolve(self, has_said: Collection[date]) -> tuple[DateSpan, ...]:
        """Return all spans, and for each day the first candidate on which something was said, else the first."""
        chosen = (
            next(
                (one for one in candidates if any(one.first <= day <= one.last for day in has_said)),
                candidates[0],
            )
            for candidates in self.days
        )
        return (*self.spans, *(span for one in chosen for span in spans_around(one.first, one.last)))


@dataclass(frozen=True, slots=True)
class _Named:
    """A date from `start` to `end` of a text; parts that it does not name are None. `to_day` is the last of several
    days. `other` reads the same numbers in the other order. `is_last`: a word beside it says "last"."""

    year: int | None
    month: int
    day: int | None
    start: int
    end: int
    to_day: int | None = None
    other: _Named | None = None
    is_last: bool = False


def find_dates(question: str, today: date) -> Dates:
    """Return only the most exact reading: days, else months and relative times, else years; empty if no date is
    named."""
    folded = _CJK_YEAR.sub(_read_cjk_year, fold_text(question).replace("两", "二").replace("兩", "二"))
    folded = _read_korean(_CJK_NUMBER.sub(_read_cjk_number, folded))
    is_english = latin_language(TOKEN.findall(folded)) == ENGLISH
    folded = _DAY_IN_WORDS.sub(lambda found: _read_day(found, is_english=is_english), folded)
    named = sorted(
        [*_numeric(folded, is_english=is_english), *_written(folded, question)], key=lambda each: each.start
    )
    relative = dict.fromkeys(find_relative(folded, question, today))
    whole_years = [span for span in relative if _is_year(span)]
    if named and len(whole_years) == 1:
        # "May 3 last year", "去年12月": the year belongs to the date.
        del relative[whole_years[0]]
        named = [replace(each, year=each.year or whole_years[0].first.year) for each in named]
    days = [*_in_pairs([each for each in named if each.day], _span_of_days, _single_days, today)]
    if any(days):
        return Dates(days=tuple(dict.fromkeys(filter(None, days))))
    months = [each for each in named if each.day is None]
    of_months = _in_pairs(months, _span_of_months, _single_months, today)
    spans = (*(span for spans in of_months for span in spans), *relative)
    if spans:
        return Dates(tuple(dict.fromkeys(spans)))
    years = [*_YEAR.findall(folded), *(match[4] for match in _CJK.finditer(folded) if match[4])]
    spans_of_years = (year_span(int(year)) for year in dict.fromkeys(years))
    return Dates(tuple(filter(None, spans_of_years)))


def _is_year(span: DateSpan) -> bool:
    return (span.first, span.last) == (date(span.first.year, 1, 1), date(span.first.year, 12, 31))


# --- Dates as they are written ------------------------------------------------------------------------------------


def _numeric(text: str, *, is_english: bool) -> Iterator[_Named]:
    for match in _YEAR_FIRST.finditer(text):
        yield _Named(int(match[1]), int(match[3]), int(match[4]), *match.span())
    for match in _YEAR_LAST.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        day_first = _Named(year, second, first, *match.span())
        month_first = _Named(year, first, second, *match.span())
        one, other = (month_first, day_first) if is_english and match[2] == "/" else (day_first, month_first)
        yield replace(one, other=other)
    # Blank out dates such as 2026.5.3, whose end is no day of its own. Blanks keep the positions in the text.
    for match in _DOTTED.finditer(_YEAR_FIRST.sub(lambda found: " " * len(found[0]), text)):
        named_year = int(match[3]) + (2000 if len(match[3]) == 2 else 0) if match[3] else None
        # It may be a version, a section or an amount: in English if it is no whole date, elsewhere if it ends the text.
        may_be_number = named_year is None and (is_english or match.end() == len(text.rstrip(" ?!")))
        is_short = is_english and named_year is not None and len(match[3]) == 2 and match[1][0] != "0"
        if (may_be_number or is_short) and not _BEFORE_DOTTED.search(text, 0, match.start()):
            continue
        yield _Named(named_year, int(match[2]), int(match[1]), *match.span())
    for match in _CJK.finditer(text):
        if match[2]:
            to_day = _CJK_TO_DAY.match(text, match.end()) if match[3] else None
            yield _Named(
                int(match[1]) if match[1] else None,
                int(match[2]),
                int(match[3]) if match[3] else None,
                *match.span(),
                to_day=int(to_day[1]) if to_day else None,
            )


def _read_cjk_year(match: re.Match[str]) -> str:
    return "".join(str(_CJK_DIGITS.index(digit)) for digit in match[0].replace("零", "〇"))


def _read_cjk_number(match: re.Match[str]) -> str:
    return str(_read_tens(match[0], "十", _CJK_DIGITS))


def _read_tens(number: str, ten: str, digits: str) -> int:
    tens, is_ten, ones = number.rpartition(ten)
    value = digits.index(ones) if ones else 0
    return value + 10 * (digits.index(tens) if tens else 1) if is_ten else value


def _read_korean(text: str) -> str:
    """Return the text with its Korean dates in digits. A month alone stays: it may be a name or another word."""
    text = _KOREAN_DAYS_AGO.sub(lambda found: f"{_korean_number(found[1])}일 전", text)
    return _KOREAN_DATE.sub(
        lambda found: (
            f"{_KOREAN_MONTHS.get(found[1]) or _korean_number(found[1])}월 {_korean_number(found[2])}일"
        ),
        text,
    )


def _korean_number(number: str) -> int:
    return _read_tens(number, "십", _KOREAN_DIGITS)


def _read_day(match: re.Match[str], *, is_english: bool) -> str:
    """Return the day before a month in digits: "primo maggio", "le deux septembre", "the third of May". In English
    "due" and "six" are no days."""
    word = f"{match[1]} of" if match[2] == " of " else match[1]
    day = None if is_english and word.isascii() and word == match[1] else _days_in_words().get(word)
    return f"{day}{match[2]}" if day and month_of(match[3]) else match[0]


@cache
def _days_in_words() -> Mapping[str, int]:
    """Return the numbers of words, without articles that also mean one."""
    counted = {word: int(number) for word, number in date_names().numbers.items() if 1 < int(number) < 32}
    english = {f"{word} of": day for day, word in enumerate(_ENGLISH.split(), start=1)}
    german = {word: day for day, word in enumerate(_GERMAN.split(), start=1)}
    return {**counted, **english, **german, **dict.fromkeys(_FIRST.split(), 1), "третьего": 3}


def _written(folded: str, original: str) -> Iterator[_Named]:
    """Yield the dates with the name of a month, in any language."""
    tokens = [*TOKEN.finditer(folded)]
    words = [token[0] for token in tokens]
    for at, word in enumerate(words):
        # Arabic months may be two words.
        month = month_of(word) or month_of(" ".join(words[at : at + 2]))
        if month is None:
            continue
        after, before = _numbers_from(words, at + 1, 1), _numbers_from(words, at - 1, -1)
        years = [number for number in after if number >= 1000]
        # "Mar eat 3" is no date: a day after its month must follow directly.
        numbers = [_short_number(following, LAST_YEAR) for following in words[at + 1 : at + 2]]
        beside = [number for number in numbers if number is not None]
        goes_on = any(map(month_of, words[max(0, at - 2) : at]))
        ahead = [number for number in before if 1 <= number <= 31]
        is_ahead = words[at - 1 : at] == [str(number) for number in before[:1]] or not any(
            1 <= n <= 31 for n in beside
        )
        day = next(iter((*before[:1], *beside) if is_ahead else beside), 0)
        to_day = _day_after(folded, tokens, at + 1) if day in beside and not ahead else None
        if len(ahead) == 2 and ahead[1] < ahead[0]:
            day, to_day = ahead[1], ahead[0]
        if not 1 <= day <= 31 and not years and not (_stands_alone(word, words, original) or goes_on):
            continue
        # In "May of last year" the word belongs to the year.
        behind = [] if date_names().units.keys() & words[at + 2 : at + 3] else words[at + 1 : at + 2]
        beginnings = {one[:BEGINNING] for one in (*words[max(0, at - 1) : at], *behind)}
        yield _Named(
            years[0] if years else None,
            month,
            day if 1 <= day <= 31 else None,
            *tokens[at].span(),
            to_day=to_day,
            is_last=not beginnings.isdisjoint(date_names().last),
        )


def _day_after(folded: str, tokens: Sequence[re.Match[str]], at: int) -> int | None:
    """Return the last of several days that follow their month: "March 3 to 5"; None if there is only one."""
    if at + 1 >= len(tokens):
        return None
    start = tokens[at].end()
    match = _TO.match(folded, start)
    following = TOKEN.match(folded, match.end()) if match else None
    return _short_number(following[0], 31) if following else None


def _short_number(word: str, most: int) -> int | None:
    """Return the number that a word is; None if it has more than four digits or exceeds `most`."""
    number = int(word) if word.isdecimal() and len(word) <= len(str(LAST_YEAR)) else None
    return number if number is not None and number <= most else None


def _numbers_from(words: Sequence[str], start: int, step: int) -> list[int]:
    """Return up to two numbers in this direction, with only short words in between."""
    found: list[int] = []
    fillers, at = 0, start
    while 0 <= at < len(words) and len(found) < 2:
        number = _short_number(words[at], LAST_YEAR)
        if number is not None:
            found.append(number)
            fillers = 0
        elif len(words[at]) <= _FILLER_LETTERS and fillers < _FILLERS:
            fillers += 1
        else:
            break
        at += step
    return found


def _stands_alone(word: str, words: Sequence[str], original: str) -> bool:
    """Return whether a word is a month although it has no day and no year. English ones are capitalised inside a
    sentence: a lone "may" or "march" is a verb. Others need words of their language beside them, and only German ones
    may be capitalised there: "Julio" and "Marco" are names."""
    is_large = re.search(rf"\S\s+{word.capitalize()}\b", without_accents(original)) is not None
    if word in MONTHS:
        return is_large
    if not word.isascii():
        return True
    is_name = is_large and "de" not in languages_of(word)
    return len(word) >= _LEAST_MONTH_LETTERS and not is_name and not is_of_another_language(word, words)


# --- The spans of these dates -----------------------------------------------------------------------------------------

_Spans = tuple[DateSpan, ...]


def _in_pairs(
    named: Sequence[_Named],
    pair: Callable[[_Named, _Named, date], _Spans],
    single: Callable[[_Named, date], _Spans],
    today: date,
) -> Iterator[_Spans]:
    """Yield the spans of each date. Two close dates are the ends of one span if the second is later."""
    at = 0
    while at < len(named):
        following = named[at + 1] if at + 1 < len(named) else None
        is_close = following is not None and 0 < following.start - named[at].end <= _GAP_CHARS
        together = pair(named[at], following, today) if following is not None and is_close else ()
        yield together or single(named[at], today)
        at += 2 if together else 1


def _years(named: _Named, today: date) -> Iterable[int]:
    return [named.year] if named.year else range(today.year, today.year - YEARS_BACK, -1)


def _single_days(named: _Named, today: date) -> _Spans:
    """Return the day; without a year, that day of each year up to today, latest first."""
    if named.to_day is not None:
        several = _span_of_days(named, replace(named, day=named.to_day), today)
        if several:
            return several
    found = [
        DateSpan(known, known)
        for reading in (named, named.other)
        if reading is not None and reading.day is not None
        for year in _years(reading, today)
        if (known := day_or_none(year, reading.month, reading.day)) is not None
        # Without a year, skip future days, on which nothing can have been said.
        and (reading.year or known <= today)
    ]
    return tuple(found)


def _span_of_days(first: _Named, last: _Named, today: date) -> _Spans:
    """Return the days from one to the other, latest year first; empty unless they are a span of at most 31 days."""
    found = []
    for year in _years(last if last.year else first, today):
        start, end = (day_or_none(year, each.month, each.day or 1) for each in (first, last))
        # Without a year, skip spans that have not begun, in which nothing can have been said.
        is_past = bool(first.year or last.year) or (start is not None and start <= today)
        if start and end and is_past and timedelta(0) < end - start <= timedelta(days=_MOST_DAYS):
            found.append(DateSpan(start, end))
    return tuple(found)


def _single_months(named: _Named, today: date) -> _Spans:
    """Return the month; without a year, that month of each year in which it has begun, latest first. If the date says
    "last", only the latest that is over."""
    months = [*filter(None, (month_span(year, named.month) for year in _years(named, today)))]
    if named.year:
        return tuple(months)
    if named.is_last:
        return tuple(month for month in months if month.last < today)[:1]
    return tuple(month for month in months if month.first <= today)


def _span_of_months(first: _Named, last: _Named, today: date) -> _Spans:
    """Return the months from one to the other in each year; empty unless the second is later."""
    spans = (
        (month_span(year, first.month), month_span(year, last.month))
        for year in _years(last if last.year else first, today)
        if first.month < last.month and (first.year is None or first.year == last.year)
    )
    return tuple(DateSpan(start.first, end.last) for start, end in spans if start and end)
