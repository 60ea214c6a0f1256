"""Data for the first page of the admin panel: answers, queues, failures, and tokens by day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.operations.database.ids import first_id_at
from chatapp.operations.translations import translate_sentence
from chatapp.providers.selectors import has_real_default, usage_by_day
from chatapp.providers.usage_report import bars_of
from chatapp.runs.models import Run

DAYS = 14
FAILURES_SHOWN = 6


def read_overview(now: datetime) -> dict[str, Any]:
    """Return the data for `admin/index.html`. Rows are found by their ids, which are in chronological order."""
    recent = Run.objects.filter(pk__gte=first_id_at(now - timedelta(days=1)))
    statuses = dict(recent.values_list("status").annotate(count=Count("pk")))
    failed = recent.filter(status=Run.Status.FAILED).values_list("error_category")
    failures = failed.annotate(count=Count("pk")).order_by("-count")[:FAILURES_SHOWN]
    active = Run.objects.filter(status__in=Run.ACTIVE)
    oldest = active.filter(status=Run.Status.QUEUED).order_by("created_at").first()
    return {
        "runs": [
            (gettext(label), statuses[value]) for value, label in Run.Status.choices if value in statuses
        ],
        "failures": [(translate_sentence(category), count) for category, count in failures],
        "running": active.filter(status=Run.Status.RUNNING).count(),
        "queued": active.filter(status=Run.Status.QUEUED).count(),
        "waiting_s": round((now - oldest.created_at).total_seconds()) if oldest else 0,
        "compactions": Compaction.objects.filter(status__in=Compaction.ACTIVE).count(),
        "has_model": has_real_default(),
        "users": User.objects.filter(is_active=True).count(),
        **_read_days(now),
    }


def _read_days(now: datetime) -> dict[str, Any]:
    """Return tokens and cost of each day with their bars, and the sums."""
    today = now.astimezone(UTC).date()
    days = usage_by_day(today - timedelta(days=DAYS - 1), today)
    costs = [day["cost"] for day in days if day["cost"] is not None]
    return {
        "bars": bars_of(days, "day"),
        "input": sum(day["input_tokens"] for day in days),
        "output": sum(day["output_tokens"] for day in days),
        "cost": sum(costs) if costs else None,
    }
