"""Reads memory entries and the days they belong to, always of one user. What waits for approval is in no day."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from chatapp.errors import NotFound
from chatapp.models import Compaction, Conversation, MemoryEntry, User
from chatapp.models.search import StaleDay
from chatapp.selectors.access import parse_id


def user_zone(time_zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def kept_entries() -> QuerySet[MemoryEntry]:
    return MemoryEntry.objects.filter(state=MemoryEntry.State.KEPT)


def withdrawn_entries() -> QuerySet[MemoryEntry]:
    """Their summary was undone, no other took any of their messages out of the context again, and nobody wrote in
    them: the messages stand for themselves."""
    standing = Compaction.objects.filter(
        status=Compaction.Status.DONE,
        branch=OuterRef("compaction__branch"),
        first_position__lte=OuterRef("compaction__last_position"),
        last_position__gte=OuterRef("compaction__first_position"),
    )
    undone = MemoryEntry.objects.filter(compaction__status=Compaction.Status.UNDONE)
    return undone.filter(~Exists(standing), author=MemoryEntry.Author.EXTRACTION)


@dataclass(frozen=True, slots=True)
class DayCount:
    day: date
    entry_count: int


def list_days(user: User, *, before: date | None = None, limit: int = 50) -> list[DayCount]:
    """Newest first; `before` is the last day of the page ahead."""
    rows = kept_entries().filter(user=user)
    if before is not None:
        rows = rows.filter(day__lt=before)
    counted = rows.values("day").annotate(entry_count=Count("id")).order_by("-day")
    return [DayCount(row["day"], row["entry_count"]) for row in counted[:limit]]


def day_entries(user_id: UUID, day: date) -> list[MemoryEntry]:
    """Oldest first, with their conversations."""
    rows = kept_entries().filter(user_id=user_id, day=day).select_related("conversation", "user", "scope")
    return list(rows.prefetch_related("sources").order_by("created_at", "id"))


def lock_day(user: User, day: date) -> list[MemoryEntry]:
    """Oldest first, held until the transaction ends; their conversations before them, as everywhere."""
    rows = kept_entries().filter(user=user, day=day)
    conversations = Conversation.objects.filter(pk__in=rows.values("conversation"))
    list(conversations.select_for_update().order_by("pk").values_list("pk"))
    held = rows.select_for_update().order_by("pk")
    return sorted(held, key=lambda row: (row.created_at, row.pk))


def day_version(rows: Iterable[MemoryEntry]) -> str:
    """Another one whenever an entry of the day comes, changes or goes."""
    said = "\n".join(f"{row.pk} {row.revision}" for row in rows)
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def proposed_page(
    user: User, *, after: tuple[datetime, UUID] | None, limit: int
) -> tuple[list[MemoryEntry], bool]:
    """What waits for approval, newest first, and whether there is more."""
    rows = MemoryEntry.objects.filter(user=user, state=MemoryEntry.State.PROPOSED)
    if after is not None:
        moment, entry_id = after
        rows = rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__lt=entry_id))
    found = list(
        rows.select_related("scope").prefetch_related("sources").order_by("-created_at", "-pk")[: limit + 1]
    )
    return found[:limit], len(found) > limit


def stale_mark_ids(user_id: UUID, day: date) -> list[int]:
    return list(StaleDay.objects.filter(user_id=user_id, day=day).values_list("id", flat=True))


def days_behind(limit: int = 1000) -> list[tuple[UUID, date]]:
    """Days whose file lacks an entry or shows what is gone."""
    unwritten = (
        kept_entries().filter(written_at=None).order_by("created_at", "pk").values_list("user_id", "day")
    )
    stale = StaleDay.objects.order_by("id").values_list("user_id", "day")
    return list(dict.fromkeys([*unwritten[:limit], *stale[:limit]]))


def all_days(user_id: UUID) -> list[date]:
    return list(
        kept_entries().filter(user_id=user_id).values_list("day", flat=True).distinct().order_by("day")
    )


@dataclass(frozen=True, slots=True)
class Said:
    """One text of an entry, and by whose hand."""

    number: int
    text: str
    author: str
    written_at: datetime
    is_current: bool


def entry_history(entry: MemoryEntry) -> list[Said]:
    """Newest first, the present text included."""
    now = Said(entry.revision, entry.text, entry.author, entry.updated_at, is_current=True)
    earlier = entry.revisions.order_by("-number")
    return [now, *(Said(row.number, row.text, row.author, row.written_at, False) for row in earlier)]


def entry_of(user_id: UUID | str, entry_id: str) -> MemoryEntry:
    """Raises NotFound."""
    rows = kept_entries().filter(user_id=parse_id(user_id), pk=parse_id(entry_id))
    row = rows.select_related("conversation", "user").first()
    if row is None:
        raise NotFound()
    return row
