"""Reads the profile and its versions, always of one user."""

from __future__ import annotations

from uuid import UUID

from django.db.models import F

from chatapp.errors import NotFound
from chatapp.models import Conversation, Profile, ProfileVersion, User


def profile_text(conversation: Conversation) -> str:
    """What a context of this conversation may know of its user: nothing where it is temporary, or adds to a shared
    memory, or memory is paused or the profile switched off."""
    is_closed = not conversation.uses_memory or conversation.memory == Conversation.Memory.PAUSED
    if is_closed or conversation.scope_id is not None:
        return ""
    allowed = Profile.objects.filter(user__uses_profile=True, user__memory_paused=False)
    return allowed.filter(user_id=conversation.owner_id).values_list("text", flat=True).first() or ""


def profile_of(user_id: UUID) -> Profile:
    """An empty one, not stored, where there is none yet."""
    return Profile.objects.filter(user_id=user_id).first() or Profile(user_id=user_id)


def version_page(user: User, *, before: int | None, limit: int) -> list[ProfileVersion]:
    """Newest first; `before` is the last number of the page ahead."""
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
    """Users whose file does not show their profile as it is."""
    rows = Profile.objects.exclude(version=F("written_version"))
    return list(rows.order_by("user").values_list("user_id", flat=True)[:limit])
