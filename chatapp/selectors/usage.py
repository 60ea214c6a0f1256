"""What a user spent, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal

from django.db.models import Count, F, QuerySet, Sum
from django.db.models.functions import TruncDate

from chatapp.models import Usage, User

GroupBy = Literal["day", "model", "purpose", "conversation"]

_KEYS = {
    "day": TruncDate("created_at", tzinfo=UTC),
    "model": F("model_name"),
    "purpose": F("purpose"),
    "conversation": F("conversation_id"),
}
_SUMS = {
    "calls": Count("id"),
    "total_input": Sum("input_tokens", default=0),
    "total_output": Sum("output_tokens", default=0),
    "total_cached": Sum("cached_tokens", default=0),
    "total_cost": Sum("cost"),
    "total_kept_out": Sum("kept_out_tokens", default=0),
    "total_compaction_saved": Sum("compaction_saved"),
    "total_cache_saved": Sum("cache_saved"),
}


def usage_rows(
    user: User, *, first: date, last: date, group_by: GroupBy
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The groups by key, and their total. Days are UTC; `last` is included. Cost is None where no price was known."""
    rows = _within(user, first, last)
    groups = rows.annotate(key=_KEYS[group_by]).values("key").annotate(**_SUMS).order_by("key")
    return [_shape(str(group["key"] or ""), group) for group in groups], _shape(
        "total", rows.aggregate(**_SUMS)
    )


def _within(user: User, first: date, last: date) -> QuerySet[Usage]:
    start = datetime.combine(first, time.min, UTC)
    end = datetime.combine(last, time.min, UTC) + timedelta(days=1)
    return Usage.objects.filter(user=user, created_at__gte=start, created_at__lt=end)


def _shape(key: str, sums: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "key": key,
        "calls": sums["calls"],
        "input_tokens": sums["total_input"],
        "output_tokens": sums["total_output"],
        "cached_tokens": sums["total_cached"],
        "cost": _money(sums["total_cost"]),
        "kept_out_tokens": sums["total_kept_out"],
        "compaction_saved": _money(sums["total_compaction_saved"]),
        "cache_saved": _money(sums["total_cache_saved"]),
    }


def _money(total: Decimal | None) -> float | None:
    return None if total is None else float(total)
