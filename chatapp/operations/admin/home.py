"""What the first page of the admin panel shows: answers, what waits, what failed, and tokens by day."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Sum
from django.db.models.functions import TruncDate

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.operations.ids import first_id_at
from chatapp.providers.models import Usage
from chatapp.providers.selectors import has_real_default
from chatapp.runs.models import Run

DAYS = 14
FAILURES_SHOWN = 6


def read_overview(now: datetime) -> dict[str, Any]:
    """Return what `admin/index.html` shows. Rows are found by their ids, which are in the order of time."""
    recent = Run.objects.filter(pk__gte=first_id_at(now - timedelta(days=1)))
    statuses = dict(recent.values_list("status").annotate(count=Count("pk")))
    failures = recent.filter(status=Run.Status.FAILED).values_list("error_category")
    active = Run.objects.filter(status__in=Run.ACTIVE)
    oldest = active.filter(status=Run.Status.QUEUED).order_by("created_at").first()
    return {
        "runs": [(label, statuses[value]) for value, label in Run.Status.choices if value in statuses],
        "failures": failures.annotate(count=Count("pk")).order_by("-count")[:FAILURES_SHOWN],
        "running": active.filter(status=Run.Status.RUNNING).count(),
        "queued": active.filter(status=Run.Status.QUEUED).count(),
        "waiting_s": round((now - oldest.created_at).total_seconds()) if oldest else 0,
        "compactions": Compaction.objects.filter(status__in=Compaction.ACTIVE).count(),
        "has_model": has_real_default(),
        "users": User.objects.filter(is_active=True).count(),
        **_read_days(now),
    }


def _read_days(now: datetime) -> dict[str, Any]:
    """Return tokens and cost of each day, with the place of its bars in a picture that is 100 units high."""
    first = now.date() - timedelta(days=DAYS - 1)
    sums = (
        Usage.objects.filter(pk__gte=first_id_at(now - timedelta(days=DAYS)), created_at__date__gte=first)
        .annotate(day=TruncDate("created_at"))
        .values("day")
        .annotate(input=Sum("input_tokens"), output=Sum("output_tokens"), cost=Sum("cost"))
    )
    by_day = {row["day"]: row for row in sums}
    nothing = {"input": 0, "output": 0, "cost": None}
    dates = [first + timedelta(days=number) for number in range(DAYS)]
    days: list[dict[str, Any]] = [{**by_day.get(date, nothing), "day": date} for date in dates]
    most = max(day["input"] + day["output"] for day in days) or 1
    for day in days:
        day["output_height"] = round(100 * day["output"] / most, 2)
        day["input_height"] = round(100 * day["input"] / most, 2)
        day["input_top"] = round(100 - day["input_height"], 2)
        day["output_top"] = round(day["input_top"] - day["output_height"], 2)
    costs = [day["cost"] for day in days if day["cost"] is not None]
    return {
        "days": days,
        "input": sum(day["input"] for day in days),
        "output": sum(day["output"] for day in days),
        "cost": sum(costs) if costs else None,
    }
