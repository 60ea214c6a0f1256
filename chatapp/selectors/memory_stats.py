"""How much is remembered and how many tokens were used, day by day in the user's time zone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from django.db.models import Sum
from django.db.models.functions import TruncDate

from chatapp.models import Usage, User
from chatapp.selectors.memory import kept_entries, user_zone
from memory.tokens import estimate_text


@dataclass(slots=True)
class DayStats:
    """`entry_tokens` are what the day's entries would take in a context."""

    entry_count: int = 0
    entry_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


def memory_stats(user: User, first: date, last: date) -> dict[date, DayStats]:
    """Days with anything to tell, oldest first."""
    days: dict[date, DayStats] = defaultdict(DayStats)
    entries = kept_entries().filter(user=user, day__gte=first, day__lte=last)
    for day, text in entries.values_list("day", "text").iterator():
        days[day].entry_count += 1
        days[day].entry_tokens += estimate_text(text)
    zone = user_zone(user.time_zone)
    start = datetime.combine(first, time.min, zone)
    end = datetime.combine(last + timedelta(days=1), time.min, zone)
    used = Usage.objects.filter(user=user, created_at__gte=start, created_at__lt=end)
    by_day = used.annotate(day=TruncDate("created_at", tzinfo=zone)).values("day").order_by("day")
    for row in by_day.annotate(read=Sum("input_tokens"), written=Sum("output_tokens")):
        days[row["day"]].input_tokens = row["read"]
        days[row["day"]].output_tokens = row["written"]
    return dict(sorted(days.items()))
