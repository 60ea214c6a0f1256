"""What the profiles do not know yet, whose turn it is, and the work that waits for a worker."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from uuid import UUID

from django.db.models import Min, Q, QuerySet

from chatapp.models import Consolidation, MemoryEntry, ProfileVersion
from chatapp.selectors.memory import kept_entries, user_zone
from memory.consolidation import UserEdits, read_edits

PICKED_UP_AFTER = timedelta(seconds=5)
READ_AT_ONCE = 200
VERSIONS_READ = 1_000


def _unknown() -> QuerySet[MemoryEntry]:
    """Entries that no profile has taken into account, of users who want one and may be learned about."""
    wanted = kept_entries().filter(consolidated_at=None, user__is_active=True)
    return wanted.filter(user__uses_profile=True, user__memory_paused=False)


def users_due(now: datetime) -> list[tuple[UUID, date]]:
    """Users whose midnight has passed since something was noted, with their day; once a night each."""
    rows = _unknown().values("user_id", "user__time_zone").annotate(first=Min("day")).order_by("user_id")
    due = [
        (row["user_id"], today)
        for row in rows
        if row["first"] < (today := now.astimezone(user_zone(row["user__time_zone"])).date())
    ]
    tried = Consolidation.objects.filter(night__gte=now.date() - timedelta(days=1))
    done = set(tried.values_list("user_id", "night"))
    return [pair for pair in due if pair not in done]


def unknown_entries(row: Consolidation) -> list[MemoryEntry]:
    """What this consolidation may read, oldest first; by night, only of the days that are over."""
    rows = _unknown().filter(user_id=row.user_id)
    if row.night is not None:
        rows = rows.filter(day__lt=row.night)
    return list(rows.order_by("day", "created_at", "pk")[:READ_AT_ONCE])


def has_unknown_entries(row: Consolidation) -> bool:
    return bool(unknown_entries(row)[:1])


def edits_of(user_id: UUID) -> UserEdits:
    """What the user wrote in the profile and took out of it."""
    newest = ProfileVersion.objects.filter(profile=user_id).order_by("-number")[:VERSIONS_READ]
    versions = list(newest.values_list("author", "text"))
    return read_edits((author == ProfileVersion.Author.USER, text) for author, text in reversed(versions))


def waiting_consolidations(now: datetime) -> list[UUID]:
    """Pending for longer than a wake-up takes, or held by a worker that is gone."""
    late = Q(status=Consolidation.Status.PENDING, created_at__lt=now - PICKED_UP_AFTER)
    late |= Q(status=Consolidation.Status.RUNNING, lease_expires_at__lt=now)
    return list(
        Consolidation.objects.filter(late).order_by("created_at", "pk").values_list("pk", flat=True)[:20]
    )


def latest_consolidation(user_id: UUID) -> Consolidation | None:
    return Consolidation.objects.filter(user_id=user_id).order_by("-created_at", "-pk").first()


def count_since(user_id: UUID, moment: datetime) -> int:
    return Consolidation.objects.filter(user_id=user_id, created_at__gte=moment).count()
