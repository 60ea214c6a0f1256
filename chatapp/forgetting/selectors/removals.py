"""Reads which deletions may still lie in the database's files."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet

from chatapp.forgetting.models import PurgeMark, Removal
from chatapp.recall.models import SearchOwner

GATHERED = timedelta(minutes=1)
"""Deletions of so long are purged together: it costs the same for one and for many."""


def due_purges(now: datetime) -> list[int]:
    """The newest mark, where the oldest has waited; else none."""
    if not PurgeMark.objects.filter(created_at__lt=now - GATHERED).exists():
        return []
    return list(PurgeMark.objects.order_by("-pk").values_list("pk", flat=True)[:1])


def newest_purge() -> int | None:
    return PurgeMark.objects.order_by("-pk").values_list("pk", flat=True).first()


def purge_marks(upto: int) -> QuerySet[PurgeMark]:
    return PurgeMark.objects.filter(pk__lte=upto)


def horizons(upto: int) -> list[int]:
    """The highest first. A mark that was committed after they were noted has none."""
    known = purge_marks(upto).exclude(horizon=None).order_by("-horizon")
    return [horizon for horizon in known.values_list("horizon", flat=True).distinct() if horizon is not None]


def waiting_removals(now: datetime, limit: int = 20) -> list[int]:
    """Those nobody is at work on, longest waiting first."""
    rows = Removal.objects.filter(lease_expires_at__lt=now).order_by("lease_expires_at", "pk")
    return list(rows.values_list("pk", flat=True)[:limit])


def has_abandoned_index() -> bool:
    return SearchOwner.objects.filter(user=None, scope=None).exists()
