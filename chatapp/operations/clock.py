"""Reads the clock, in one place, and knows time zones."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone


def now() -> datetime:
    return timezone.now()


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone of this name, UTC where there is none."""
    try:
        return ZoneInfo(name)
    # ValueError: names that would lead out of the folder of time zones.
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Return the moment in this time zone. At the ends of the calendar, where the zone would lead out of it, as it is:
    what is imported may be dated so."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def iso_time(moment: Any) -> str | None:
    """Return a time as the API writes it; None for none."""
    return moment.isoformat().replace("+00:00", "Z") if moment else None
