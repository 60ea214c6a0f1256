"""The dates a question names, as spans of days, each with how sure it is. What day it is comes from the caller."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
YEARS_BACK = 30
"""How far a month without a year reaches back."""

_MONTH = "|".join([*MONTHS, *(name[:3] for name in MONTHS), "sept"])
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_CJK = re.compile(r"(\d{4})\s*年(?:\s*(\d{1,2})\s*月(?:\s*(\d{1,2})\s*日)?)?")
_MONTH_DAY = re.compile(rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}}))?", re.IGNORECASE)
_DAY_MONTH = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\b\.?(?:,?\s+(\d{{4}}))?", re.IGNORECASE
)
# A lone "may" or "march" is a verb; a month is written large, or its year follows.
_MONTH_ALONE = re.compile(rf"\b({_MONTH})\b\.?(?:,?\s+(?:of\s+)?(\d{{4}}))?", re.IGNORECASE)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_AGO = re.compile(
    r"\b(\d{1,3}|a|an|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b", re.IGNORECASE
)
_LAST = re.compile(
    r"\b(last|this|past)\s+(week|month|year|weekend|" + "|".join(WEEKDAYS) + r")\b", re.IGNORECASE
)
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True, slots=True)
class DateSpan:
    """Both ends included. `weight` 1 = what was asked for; less = told about it before or after."""

    first: date
    last: date
    weight: float = 1.0


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(MONTHS, start=1) if month.startswith(name[:3].lower()))


def _day_or_none(year: int, month: int, day: int) -> date | None:
    """Return the day; None for a date that does not exist, or is too near the end of the calendar to look
    around it."""
    try:
        return date(year, month, day) if 1 < year < 9999 else None
    except ValueError:
        return None


def _around(day: date | None) -> Iterator[DateSpan]:
    """Return the days on which an event of that day is spoken of: the day, two weeks after it, and shortly
    before it."""
    if day is not None:
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


def _latest_past(month: int, day: int, today: date) -> date | None:
    this_year = _day_or_none(today.year, month, day)
    return this_year if this_year is None or this_year <= today else _day_or_none(today.year - 1, month, day)


def _exact_days(question: str, today: date) -> Iterator[date | None]:
    for match in _ISO.finditer(question):
        yield _day_or_none(int(match[1]), int(match[2]), int(match[3]))
    for match in _CJK.finditer(question):
        if match[3]:
            yield _day_or_none(int(match[1]), int(match[2]), int(match[3]))
    pairs = [(match[1], match[2], match[3]) for match in _MONTH_DAY.finditer(question)]
    pairs += [(match[2], match[1], match[3]) for match in _DAY_MONTH.finditer(question)]
    for name, day, year in pairs:
        month = _month_number(name)
        yield _day_or_none(int(year), month, int(day)) if year else _latest_past(month, int(day), today)


def _months(question: str, today: date) -> Iterator[DateSpan | None]:
    for match in _CJK.finditer(question):
        if match[2] and not match[3]:
            yield _month_span(int(match[1]), int(match[2]))
    for match in _MONTH_ALONE.finditer(question):
        name, year = match[1], match[2]
        if year:
            yield _month_span(int(year), _month_number(name))
        elif name[0].isupper() and match.start() > 0:
            month = _month_number(name)
            yield from (_month_span(today.year - back, month) for back in range(YEARS_BACK))


def _relative(question: str, today: date) -> Iterator[DateSpan]:
    lowered = question.lower()
    if re.search(r"\byesterday\b|昨日|昨天|어제", lowered):
        yield DateSpan(today - timedelta(days=1), today - timedelta(days=1))
    if re.search(r"\btoday\b|今日|今天|오늘", lowered):
        yield DateSpan(today, today)
    for match in _AGO.finditer(lowered):
        count = _NUMBERS.get(match[1]) or int(match[1])
        unit = _UNIT_DAYS[match[2]]
        middle = today - timedelta(days=count * unit)
        yield DateSpan(middle - timedelta(days=unit // 2), middle + timedelta(days=unit // 2))
    for match in _LAST.finditer(lowered):
        yield _named_span(match[1], match[2], today)


def _named_span(which: str, unit: str, today: date) -> DateSpan:
    monday = today - timedelta(days=today.weekday())
    if unit in WEEKDAYS:
        back = (today.weekday() - WEEKDAYS.index(unit)) % 7 or 7
        return DateSpan(today - timedelta(days=back), today - timedelta(days=back))
    if unit == "weekend":
        return DateSpan(monday - timedelta(days=2), monday - timedelta(days=1))
    if which in ("this", "past"):
        days = {"week": 7, "month": 31, "year": 366}[unit]
        return DateSpan(today - timedelta(days=days), today)
    if unit == "week":
        return DateSpan(monday - timedelta(days=7), monday - timedelta(days=1))
    first = today.replace(day=1)
    if unit == "month":
        end = first - timedelta(days=1)
        return DateSpan(end.replace(day=1), end)
    return DateSpan(date(today.year - 1, 1, 1), date(today.year - 1, 12, 31))


def find_dates(question: str, today: date) -> tuple[DateSpan, ...]:
    """Return the most exact reading only: days, else months and relative times, else years; empty where no
    date is named."""
    days = tuple(span for day in _exact_days(question, today) for span in _around(day))
    if days:
        return days
    spans = (*filter(None, _months(question, today)), *_relative(question, today))
    if spans:
        return spans
    years = [*_YEAR.findall(question), *(match[1] for match in _CJK.finditer(question))]
    return tuple(_year_span(int(year)) for year in dict.fromkeys(years))
