"""Reads memory entries and the days they belong to, always of one user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from django.db.models import Count

from chatapp.models import Conversation, MemoryEntry, User
from chatapp.models.search import StaleDay


@dataclass(frozen=True, slots=True)
class DayCount:
    day: date
    entry_count: int


def list_days(user: User, *, before: date | None = None, limit: int = 50) -> list[DayCount]:
    """Newest first; `before` is the last day of the page ahead."""
    rows = MemoryEntry.objects.filter(user=user)
    if before is not None:
        rows = rows.filter(day__lt=before)
    counted = rows.values("day").annotate(entry_count=Count("id")).order_by("-day")
    return [DayCount(row["day"], row["entry_count"]) for row in counted[:limit]]


def day_entries(user_id: UUID, day: date) -> list[MemoryEntry]:
    """Oldest first, with their conversations."""
    rows = MemoryEntry.objects.filter(user_id=user_id, day=day).select_related("conversation", "user")
    return list(rows.order_by("created_at", "id"))


def stale_mark_ids(user_id: UUID, day: date) -> list[int]:
    return list(StaleDay.objects.filter(user_id=user_id, day=day).values_list("id", flat=True))


def days_behind(limit: int = 1000) -> list[tuple[UUID, date]]:
    """Days whose file lacks an entry or shows what is gone."""
    unwritten = (
        MemoryEntry.objects.filter(written_at=None).order_by("created_at").values_list("user_id", "day")
    )
    stale = StaleDay.objects.order_by("id").values_list("user_id", "day")
    return list(dict.fromkeys([*unwritten[:limit], *stale[:limit]]))


def all_days(user_id: UUID) -> list[date]:
    return list(
        MemoryEntry.objects.filter(user_id=user_id).values_list("day", flat=True).distinct().order_by("day")
    )


def idle_conversation_ids(idle_since: datetime) -> list[UUID]:
    """Longest idle first. A hint: what is deleted is decided under a lock."""
    rows = Conversation.objects.filter(pinned=False, last_activity_at__lt=idle_since)
    return list(rows.order_by("last_activity_at").values_list("pk", flat=True))
