"""Reads which deletions are not done yet."""

from __future__ import annotations

from datetime import datetime

from chatapp.forgetting.models import Removal
from chatapp.recall.models import SearchOwner


def waiting_removals(now: datetime, limit: int = 20) -> list[int]:
    """Those nobody is at work on, longest waiting first."""
    rows = Removal.objects.filter(lease_expires_at__lt=now).order_by("lease_expires_at", "pk")
    return list(rows.values_list("pk", flat=True)[:limit])


def has_abandoned_index() -> bool:
    return SearchOwner.objects.filter(user=None, scope=None).exists()
