"""Reads which deletions may still lie in the database's files."""

from __future__ import annotations

from datetime import datetime, timedelta

from chatapp.models import PurgeMark

GATHERED = timedelta(minutes=1)
"""Deletions of so long are purged together: it costs the same for one and for many."""


def due_purges(now: datetime) -> list[int]:
    """The newest mark, where the oldest has waited; else none."""
    if not PurgeMark.objects.filter(created_at__lt=now - GATHERED).exists():
        return []
    return list(PurgeMark.objects.order_by("-pk").values_list("pk", flat=True)[:1])


def newest_purge() -> int | None:
    return PurgeMark.objects.order_by("-pk").values_list("pk", flat=True).first()


def marked_until(upto: int) -> datetime | None:
    """When the last of these deletions was; None where they are purged already."""
    marks = PurgeMark.objects.filter(pk__lte=upto).order_by("-created_at")
    return marks.values_list("created_at", flat=True).first()
