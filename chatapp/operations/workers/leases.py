"""Conditions that find abandoned work: rows with an expired lease, and rows that have waited too long."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q


def is_out_of_lease(now: datetime, lease: timedelta, *, column: str = "lease_expires_at") -> Q:
    """Return a condition for rows whose lease has expired, or ends later than `lease` allows because the clock that set
    it was set back since. A living holder renews its lease, or notices that it is lost."""
    # Twice, because the clocks of machines differ slightly.
    return Q(**{f"{column}__lte": now}) | Q(**{f"{column}__gt": now + 2 * lease})


def is_overdue(now: datetime, after: timedelta) -> Q:
    """Return a condition for rows that have waited longer than `after`, or have a date in the future because the clock
    was set back since."""
    return Q(created_at__lt=now - after) | Q(created_at__gt=now + after)
