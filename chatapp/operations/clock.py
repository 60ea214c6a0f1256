"""Reads the clock and converts between time zones."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone


def now() -> datetime:
    return timezone.now()


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone of this name, or UTC if it is unknown."""
    try:
        return ZoneInfo(name)
    # ValueError: a name that leads out of the time zone folder.
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Convert a time to this time zone. Return it unchanged if the result would be outside the calendar, as may happen
    with imported dates."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def iso_time(moment: Any) -> str | None:
    """Return a time in the format of the API; None for None."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None
