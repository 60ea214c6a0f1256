"""Spans of days, each with a weight for how surely the question means it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

LAST_YEAR = date.max.year
"""The last year of the calendar. It is rejected like the first one, because neither has days on both sides."""
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

MOST_EXACT_DAYS = 3
FEW = 0
"""An unspecified small count, read as two to six."""


@dataclass(frozen=True, slots=True)
class DateSpan:
    """Both ends are included. `weight` is 1 for the days asked for, less for nearby or uncertain days."""

    first: date
    last: date
    weight: float = 1.0

    @property
    def is_exact(self) -> bool:
        """Return whether the question asks for exactly this day or these few days."""
        return (self.last - self.first).days < MOST_EXACT_DAYS and self.weight == 1.0


def day_or_none(year: int, month: int, day: int) -> date | None:
    """Return the date; None if it does not exist or is in the first or the last year of the calendar."""
    try:
        return date(year, month, day) if 1 < year < LAST_YEAR else None
    except ValueError:
        return None


def spans_around(first: date, last: date) -> Iterator[DateSpan]:
    """Yield the days on which an event of these days is talked about: the days, two weeks after them, and shortly
    before."""
    yield DateSpan(first, last, 1.0)
    yield DateSpan(last + timedelta(days=1), last + timedelta(days=14), 0.6)
    yield DateSpan(first - timedelta(days=3), first - timedelta(days=1), 0.3)


def month_span(year: int, month: int) -> DateSpan | None:
    if not (1 <= month <= 12 and 1 < year < LAST_YEAR):
        return None
    following = date(year + month // 12, month % 12 + 1, 1)
    return DateSpan(date(year, month, 1), following - timedelta(days=1))


def year_span(year: int) -> DateSpan | None:
    return DateSpan(date(year, 1, 1), date(year, 12, 31), 0.5) if 1 < year < LAST_YEAR else None


def span_ago(count: int, unit: str, today: date) -> DateSpan:
    """Return the days that "`count` units ago" may mean."""
    if count == FEW:
        days = _UNIT_DAYS[unit]
        return DateSpan(today - timedelta(days=6 * days), today - timedelta(days=2 * days))
    half = _UNIT_DAYS[unit] // 2
    middle = today - timedelta(days=count * _UNIT_DAYS[unit])
    return DateSpan(middle - timedelta(days=half), middle + timedelta(days=half))


def span_since(count: int, unit: str, today: date) -> DateSpan:
    """Return the last `count` units, up to today."""
    return DateSpan(today - timedelta(days=count * _UNIT_DAYS[unit]), today)


def calendar_span(count: int, unit: str, today: date) -> DateSpan:
    """Return the calendar day, week, month or year that is `count` before the current one."""
    if unit == "day":
        return DateSpan(today - timedelta(days=count), today - timedelta(days=count))
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * count)
        return DateSpan(monday, monday + timedelta(days=6))
    if unit == "month":
        months = today.year * 12 + today.month - 1 - count
        span = month_span(months // 12, months % 12 + 1)
        assert span is not None
        return span
    return DateSpan(date(today.year - count, 1, 1), date(today.year - count, 12, 31))


def last_weekend(today: date) -> DateSpan:
    monday = today - timedelta(days=today.weekday())
    return DateSpan(monday - timedelta(days=2), monday - timedelta(days=1))


def latest_weekday(weekday: int, today: date, weight: float) -> DateSpan:
    """Return the latest such weekday before today."""
    day = today - timedelta(days=(today.weekday() - weekday) % 7 or 7)
    return DateSpan(day, day, weight)
