"""Every write to a profile: each makes a version, so that nothing anybody wrote is lost."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.long_term.models import Profile, ProfileVersion
from chatapp.long_term.selectors.profile import accessible_version
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations.errors import Conflict


@transaction.atomic
def write_profile(*, user_id: UUID, text: str, now: datetime, version: int | None = None) -> Profile:
    """The user's own words. Raises Conflict where `version` is given and is not the present one."""
    profile = lock_profile(user_id)
    if version is not None and version != profile.version:
        raise Conflict(
            "The profile was changed meanwhile. Read it again and repeat your change.",
            details={"version": profile.version},
        )
    set_text(profile, text, ProfileVersion.Author.USER, now)
    return profile


@transaction.atomic
def revert_profile(*, user: User, number: int, now: datetime) -> Profile:
    """It says again what it said then: a new version, so that this can be reverted, too."""
    profile = lock_profile(user.pk)
    set_text(profile, accessible_version(user, number).text, ProfileVersion.Author.USER, now)
    return profile


def lock_profile(user_id: UUID) -> Profile:
    profile, _ = Profile.objects.select_for_update().get_or_create(user_id=user_id)
    return profile


def set_text(profile: Profile, text: str, author: ProfileVersion.Author, now: datetime) -> bool:
    """Called in a transaction that holds the row; whether there is anything new. Of what was forgotten, a
    consolidation learns nothing again."""
    if author == ProfileVersion.Author.CONSOLIDATION:
        text = tombstones_of(profile.user_id).filter_text(text)
    if text == profile.text:
        return False
    profile.text = text
    profile.version += 1
    profile.save(update_fields=["text", "version"])
    ProfileVersion.objects.create(
        profile=profile, number=profile.version, text=text, author=author, created_at=now
    )
    return True


def mark_profile_written(written: Profile) -> None:
    """The file says what it says; what came meanwhile, or was forgotten, is still to be written."""
    same = Profile.objects.filter(pk=written.pk, version=written.version, text=written.text)
    same.update(written_version=written.version)
