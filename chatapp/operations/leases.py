"""Says which work is left: one rule for all that a process holds until a time, one for all that waits for a process."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q


def is_out_of_lease(now: datetime, lease: timedelta, *, column: str = "lease_expires_at") -> Q:
    """Return which rows have a lease that ran out, or one that ends later than it can, being given for `lease`: a clock
    gave it that has been set back since. Whoever holds it and lives renews it, or is told that it is lost."""
    # Twice, because the clocks of machines differ a little.
    return Q(**{f"{column}__lte": now}) | Q(**{f"{column}__gt": now + 2 * lease})


def is_overdue(now: datetime, after: timedelta) -> Q:
    """Return which rows wait for longer than `after`, or are dated later than now: a clock made them that has been set
    back since."""
    return Q(created_at__lt=now - after) | Q(created_at__gt=now + after)
