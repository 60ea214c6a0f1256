"""Reads profiles, their versions, and consolidations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date, datetime, timedelta
from uuid import UUID

from django.db.models import F, Min, Q, QuerySet

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.long_term.models import Consolidation, MemoryEntry, Profile, ProfileVersion
from chatapp.long_term.selectors.entries import kept_entries
from chatapp.operations.caching.editions import cached_from_user_tables
from chatapp.operations.clock import zone_named
from chatapp.operations.errors import NotFound
from chatapp.operations.workers.leases import is_overdue
from memory.long_term.consolidation import UserEdits, read_edits


def profile_text(conversation: Conversation) -> str:
    """Return the profile for contexts of this conversation. It is empty if the conversation uses no memory or adds to a
    shared memory, memory is paused, or the profile is switched off."""
    is_closed = not conversation.uses_memory or conversation.memory == Conversation.Memory.PAUSED
    if is_closed or conversation.scope_id is not None:
        return ""
    if not conversation.user.uses_profile or conversation.user.memory_paused:
        return ""
    return cached_from_user_tables(
        conversation.owner_id, "profile", lambda: profile_of(conversation.owner_id).text
    )


def profile_of(user_id: UUID) -> Profile:
    """Return the user's profile, or an empty one that is not stored."""
    return Profile.objects.filter(user_id=user_id).first() or Profile(user_id=user_id)


def co_sources_of(user_ids: Collection[UUID], entry_ids: Iterable[UUID]) -> set[UUID]:
    """Return all sources of the profile lines that have one of `entry_ids` as a source, in any version of these
    profiles."""
    wanted = {str(pk) for pk in entry_ids}
    versions = ProfileVersion.objects.filter(profile__in=user_ids).values_list("sources", flat=True)
    lines = [line for sources in versions.iterator() for line in sources if not wanted.isdisjoint(line)]
    return {UUID(pk) for line in lines for pk in line}


def version_page(user: User, *, before: int | None, limit: int) -> list[ProfileVersion]:
    """Return versions, newest first; `before` is the last number of the previous page."""
    rows = ProfileVersion.objects.filter(profile__user=user)
    if before is not None:
        rows = rows.filter(number__lt=before)
    return list(rows.order_by("-number")[:limit])


def accessible_version(user: User, number: int) -> ProfileVersion:
    row = ProfileVersion.objects.filter(profile__user=user, number=number).first()
    if row is None:
        raise NotFound("Your profile has no such version.")
    return row


def profiles_behind(limit: int = 1_000) -> list[UUID]:
    """Return the users whose profile file is stale."""
    rows = Profile.objects.exclude(version=F("written_version"))
    return list(rows.order_by("user").values_list("user_id", flat=True)[:limit])


PICKED_UP_AFTER = timedelta(seconds=5)
READ_AT_ONCE = 200
VERSIONS_READ = 1_000


def _unknown() -> QuerySet[MemoryEntry]:
    """Return entries not consolidated yet, of active users whose profile is on and whose memory is not paused."""
    wanted = kept_entries().filter(consolidated_at=None, user__is_active=True)
    return wanted.filter(user__uses_profile=True, user__memory_paused=False)


def users_due(now: datetime) -> list[tuple[UUID, date]]:
    """Return (user id, current local day) of users with new entries from before that day, once a night."""
    rows = _unknown().values("user_id", "user__time_zone").annotate(first=Min("day")).order_by("user_id")
    due = [
        (row["user_id"], today)
        for row in rows
        if row["first"] < (today := now.astimezone(zone_named(row["user__time_zone"])).date())
    ]
    # A local day is the UTC day, the one before or the one after.
    tried = Consolidation.objects.filter(night__gte=now.date() - timedelta(days=1))
    done = set(tried.values_list("user_id", "night"))
    return [pair for pair in due if pair not in done]


def unknown_entries(row: Consolidation) -> list[MemoryEntry]:
    """Return the entries that this consolidation reads, oldest first; at night, only those of days that are over."""
    rows = _unknown().filter(user_id=row.user_id)
    if row.night is not None:
        rows = rows.filter(day__lt=row.night)
    return list(rows.order_by("day", "created_at", "pk")[:READ_AT_ONCE])


def has_unknown_entries(row: Consolidation) -> bool:
    return bool(unknown_entries(row)[:1])


def edits_of(user_id: UUID) -> UserEdits:
    """Return the lines that the user wrote in the profile and removed from it."""
    newest = ProfileVersion.objects.filter(profile=user_id).order_by("-number")[:VERSIONS_READ]
    versions = list(newest.values_list("author", "text"))
    return read_edits((author == ProfileVersion.Author.USER, text) for author, text in reversed(versions))


def waiting_consolidations(now: datetime) -> list[UUID]:
    """Return consolidations that are pending for longer than a wake-up takes, or whose worker died."""
    late = Q(is_overdue(now, PICKED_UP_AFTER), status=Consolidation.Status.PENDING)
    rows = Consolidation.objects.filter(late | Consolidation.is_abandoned(now)).order_by("created_at", "pk")
    return list(rows.values_list("pk", flat=True)[:20])


def latest_consolidation(user_id: UUID) -> Consolidation | None:
    return Consolidation.objects.filter(user_id=user_id).order_by("-created_at", "-pk").first()


def count_since(user_id: UUID, moment: datetime) -> int:
    return Consolidation.objects.filter(user_id=user_id, created_at__gte=moment).count()
