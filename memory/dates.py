"""The dates a question names, as spans of days, each with how sure it is. What day it is comes from the caller."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from memory.date_names import BEGINNING, MONTHS, UNITS, WEEKDAYS, date_names
from memory.languages import fold_text

YEARS_BACK = 30
"""How far a month or a day without a year reaches back."""

# A character between digits and letters ends a word, too: "10월", "4th". Signs of Indian scripts do not.
_TOKEN = re.compile(r"\d+|(?:[^\W\d_]|[\u0900-\u0963])+")
_WORD = re.compile(r"(?:[^\W\d_]|[\u0900-\u0963])+")
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DOTTED = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.(?:\s?(\d{4}|\d{2})\b)?")
_CJK = re.compile(
    r"(?:(\d{4})\s*[年년])?\s*(?:(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日号號일])?)|(\d{4})\s*[年년]"
)
_CJK_NUMBER = re.compile(
    r"(?:[一二三四五六七八九]?十[一二三四五六七八九]?|[一二三四五六七八九])(?=\s*[个個]?[月日号號天周週年])"
)
_CJK_DIGITS = "〇一二三四五六七八九"
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_AGO = re.compile(
    r"\b(\d{1,3}|a|an|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE
)
_LAST = re.compile(
    r"\b(last|this|past)\s+(week|month|year|weekend|" + "|".join(WEEKDAYS) + r")\b", re.IGNORECASE
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_FILLERS = 2
"""So many short words may stand between a day and its month: "16th of March", "3 de octubre"."""
_FILLER_LETTERS = 3
_MOST_WORDS = 4
"""Words of a name like "day before yesterday"."""
_LEAST_MONTH_LETTERS = 4
"""A shorter month without a day is a word as well: "mar", "may", "set"."""
_UNSURE = 0.6
"""The weight of a weekday without a word that says which: "on Tuesday" may be any."""
_UNSPACED = re.compile("[\u3040-\ud7af]")
_EVERY = re.compile(r"(?:每|毎週の?|매주\s?|\d)$")
"""Before a weekday: every week, or "once a week" (一周一次)."""
_MORE_PAST = {
    "上星期": (1, "week"),
    "上礼拜": (1, "week"),
    "上个星期": (1, "week"),
    "上个礼拜": (1, "week"),
    "上個月": (1, "month"),
    "きのう": (1, "day"),
    "おととい": (2, "day"),
    "그저께": (2, "day"),
    "그제": (2, "day"),
    "letzten woche": (1, "week"),
    "letzter woche": (1, "week"),
    "امس": (1, "day"),
}


@dataclass(frozen=True, slots=True)
class DateSpan:
    """Both ends included. `weight` 1 = what was asked for; less = told about it before or after."""

    first: date
    last: date
    weight: float = 1.0

    @property
    def is_day(self) -> bool:
        return self.first == self.last and self.weight == 1.0


@dataclass(frozen=True, slots=True)
class Dates:
    """`spans` are what is sure; `days` the days that are, of each the candidates, latest first: a day without a year is
    the latest on which something was said."""

    spans: tuple[DateSpan, ...] = ()
    days: tuple[tuple[date, ...], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.spans or self.days)

    def resolve(self, has_said: Collection[date]) -> tuple[DateSpan, ...]:
        """Return all spans, with each day as one of those on which something was said."""
        chosen = (next((day for day in days if day in has_said), days[0]) for days in self.days)
        return (*self.spans, *(span for day in chosen for span in _around(day)))

    @property
    def candidates(self) -> frozenset[date]:
        return frozenset(day for days in self.days for day in days)


def _day_or_none(year: int, month: int, day: int) -> date | None:
    """Return the day; None for a date that does not exist, or is too near the end of the calendar to look
    around it."""
    try:
        return date(year, month, day) if 1 < year < 9999 else None
    except ValueError:
        return None


def _around(day: date) -> Iterator[DateSpan]:
    """Return the days on which an event of that day is spoken of: the day, two weeks after it, and shortly
    before it."""
    yield DateSpan(day, day, 1.0)
    yield DateSpan(day + timedelta(days=1), day + timedelta(days=14), 0.6)
    yield DateSpan(day - timedelta(days=3), day - timedelta(days=1), 0.3)


def _month_span(year: int, month: int) -> DateSpan | None:
    if not (1 <= month <= 12 and 1 < year < 9999):
        return None
    following = date(year + month // 12, month % 12 + 1, 1)
    return DateSpan(date(year, month, 1), following - timedelta(days=1))


def _year_span(year: int) -> DateSpan:
    return DateSpan(date(year, 1, 1), date(year, 12, 31), 0.5)


def _day_candidates(year: int | None, month: int, day: int, today: date) -> tuple[date, ...]:
    """Return the day; without a year that day of each year up to today, latest first."""
    years = [year] if year else range(today.year, today.year - YEARS_BACK, -1)
    found = [known for each in years if (known := _day_or_none(each, month, day)) is not None]
    return tuple(known for known in found if year or known <= today)


@dataclass(frozen=True, slots=True)
class _Named:
    """A date in a text; parts that it does not name are None."""

    year: int | None
    month: int
    day: int | None


def _numeric(text: str) -> Iterator[_Named]:
    for match in _ISO.finditer(text):
        yield _Named(int(match[1]), int(match[2]), int(match[3]))
    for match in _DOTTED.finditer(text):
        year = int(match[3]) + (2000 if len(match[3]) == 2 else 0) if match[3] else None
        yield _Named(year, int(match[2]), int(match[1]))
    for match in _CJK.finditer(text):
        if match[2]:
            year = int(match[1]) if match[1] else None
            yield _Named(year, int(match[2]), int(match[3]) if match[3] else None)


def _read_cjk_number(match: re.Match[str]) -> str:
    tens, ten, ones = match[0].rpartition("十")
    value = _CJK_DIGITS.index(ones) if ones else 0
    return str(value + 10 * (_CJK_DIGITS.index(tens) if tens else 1) if ten else value)


def _written(folded: str, original: str) -> Iterator[_Named]:
    """Return the dates with the name of a month, in any language."""
    months = date_names().months
    tokens = [(match[0], match.end()) for match in _TOKEN.finditer(folded)]
    words = [word for word, _ in tokens]
    for at, word in enumerate(words):
        if word not in months:
            continue
        after, before = _numbers_from(words, at + 1, 1), _numbers_from(words, at - 1, -1)
        years = [number for number in after if number >= 1000]
        # "Mar eat 3" is no date: behind a month its day follows at once.
        beside = [int(following) for following in words[at + 1 : at + 2] if following.isdecimal()]
        day = next((number for number in (*before[:1], *beside) if 1 <= number <= 31), None)
        if day is None and not years and not _stands_alone(word, original):
            continue
        yield _Named(years[0] if years else None, months[word], day)


def _numbers_from(words: Sequence[str], start: int, step: int) -> list[int]:
    """Return the numbers that follow in a direction, with no more than short words in between."""
    found: list[int] = []
    fillers, at = 0, start
    while 0 <= at < len(words) and len(found) < 2:
        if words[at].isdecimal():
            found.append(int(words[at]))
        elif len(words[at]) <= _FILLER_LETTERS and fillers < _FILLERS:
            fillers += 1
        else:
            break
        at += step
    return found


def _stands_alone(word: str, original: str) -> bool:
    """Return whether it is a month though it has no day and no year. English ones are written large inside a
    sentence: a lone "may" or "march" is a verb."""
    if word in MONTHS:
        return re.search(rf"\S\s+{word.capitalize()}\b", original) is not None
    return not word.isascii() or len(word) >= _LEAST_MONTH_LETTERS


def _relative(folded: str, original: str, today: date) -> Iterator[DateSpan]:
    lowered = original.lower()
    for match in _AGO.finditer(lowered):
        yield _ago(_NUMBERS.get(match[1]) or int(match[1]), match[2], today)
    past, weekdays = [*_past_names(folded)], [*_weekdays(folded)]
    weeks = [count for count, unit in past if unit == "week"]
    for weekday, is_last in weekdays:
        yield from (_day_of_week(count, weekday, today) for count in weeks)
        if not weeks:
            yield _latest(weekday, today, 1.0 if is_last else _UNSURE)
    for match in _LAST.finditer(lowered):
        if not (weekdays and match[2] == "week"):
            yield _named_span(match[1], match[2], today)
    names = date_names()
    for count, unit in past:
        if not (weekdays and unit == "week"):
            yield _calendar_span(count, unit, today)
    counted = _WORD.sub(lambda word: names.numbers.get(word[0], word[0]), folded)
    if any(character.isdigit() for character in counted) and not _AGO.search(lowered):
        for unit in UNITS:
            for match in names.ago[unit].finditer(counted):
                digits = next((group for group in match.groups() if group and group.isdecimal()), "")
                if 0 < len(digits) <= _FILLER_LETTERS:
                    yield _ago(int(digits), unit, today)


def _weekdays(folded: str) -> Iterator[tuple[int, bool]]:
    """Return the weekdays that are named, and of each whether it says that the last one is meant. One of next week, and
    one of every week, are no dates."""
    names = date_names()
    words = _TOKEN.findall(folded)
    if any(f" {name} " in f" {' '.join(words)} " or _holds_unspaced(folded, name) for name in names.coming):
        return
    for at in range(len(words)):
        name = next(
            (name for name in (" ".join(words[at : at + 2]), words[at]) if name in names.weekdays), ""
        )
        around = {word[:BEGINNING] for word in words[max(0, at - 2) : at + 4]}
        is_last = not around.isdisjoint(names.last)
        if name and around.isdisjoint(names.next) and (is_last or name not in names.short_weekdays):
            yield names.weekdays[name], is_last
    for name, weekday in names.weekdays.items():
        if _UNSPACED.match(name) and name not in words:
            for match in re.finditer(re.escape(name), folded):
                if not _EVERY.search(folded[: match.start()]):
                    yield weekday, False


def _holds_unspaced(folded: str, name: str) -> bool:
    return _UNSPACED.match(name) is not None and name in folded


def _day_of_week(count: int, weekday: int, today: date) -> DateSpan:
    day = _calendar_span(count, "week", today).first + timedelta(days=weekday)
    return DateSpan(day, day)


def _latest(weekday: int, today: date, weight: float) -> DateSpan:
    day = today - timedelta(days=(today.weekday() - weekday) % 7 or 7)
    return DateSpan(day, day, weight)


def _past_names(folded: str) -> Iterator[tuple[int, str]]:
    """Return what is named like "yesterday": word for word where words are apart, anywhere where they are not."""
    past = {**date_names().past, **_MORE_PAST}
    words = _TOKEN.findall(folded)
    at = 0
    while at < len(words):
        longest = next(
            (count for count in range(_MOST_WORDS, 0, -1) if " ".join(words[at : at + count]) in past), 0
        )
        if longest:
            yield past[" ".join(words[at : at + longest])]
        at += longest or 1
    unspaced = [name for name in past if _holds_unspaced(folded, name)]
    longest_only = [
        name for name in unspaced if not any(name in other and name != other for other in unspaced)
    ]
    yield from (past[name] for name in longest_only if name not in words)


def _ago(count: int, unit: str, today: date) -> DateSpan:
    half = _UNIT_DAYS[unit] // 2
    middle = today - timedelta(days=count * _UNIT_DAYS[unit])
    return DateSpan(middle - timedelta(days=half), middle + timedelta(days=half))


def _calendar_span(count: int, unit: str, today: date) -> DateSpan:
    """Return the day, week, month or year so many before today's."""
    if unit == "day":
        return DateSpan(today - timedelta(days=count), today - timedelta(days=count))
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * count)
        return DateSpan(monday, monday + timedelta(days=6))
    if unit == "month":
        months = today.year * 12 + today.month - 1 - count
        span = _month_span(months // 12, months % 12 + 1)
        assert span is not None
        return span
    return DateSpan(date(today.year - count, 1, 1), date(today.year - count, 12, 31))


def _named_span(which: str, unit: str, today: date) -> DateSpan:
    if unit in WEEKDAYS:
        return _latest(WEEKDAYS.index(unit), today, 1.0)
    if unit == "weekend":
        monday = today - timedelta(days=today.weekday())
        return DateSpan(monday - timedelta(days=2), monday - timedelta(days=1))
    if which in ("this", "past"):
        days = {"week": 7, "month": 31, "year": 366}[unit]
        return DateSpan(today - timedelta(days=days), today)
    return _calendar_span(1, unit, today)


def find_dates(question: str, today: date) -> Dates:
    """Return the most exact reading only: days, else months and relative times, else years; empty where no
    date is named."""
    folded = _CJK_NUMBER.sub(_read_cjk_number, fold_text(question).replace("两", "二"))
    named = [*_numeric(folded), *_written(folded, question)]
    days = [_day_candidates(each.year, each.month, each.day, today) for each in named if each.day]
    if any(days):
        return Dates(days=tuple(dict.fromkeys(filter(None, days))))
    months = [each for each in named if each.day is None]
    spans = (*_month_spans(months, today), *_relative(folded, question, today))
    if spans:
        return Dates(tuple(dict.fromkeys(spans)))
    years = [*_YEAR.findall(folded), *(match[4] for match in _CJK.finditer(folded) if match[4])]
    return Dates(tuple(_year_span(int(year)) for year in dict.fromkeys(years)))


def _month_spans(months: Iterable[_Named], today: date) -> Iterator[DateSpan]:
    for each in months:
        years = [each.year] if each.year else range(today.year, today.year - YEARS_BACK, -1)
        yield from filter(None, (_month_span(year, each.month) for year in years))
