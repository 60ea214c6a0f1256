"""Takes what was forgotten out of a user's profile and all its versions, inside the transaction that forgets."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import F

from chatapp.models import Consolidation, Profile, ProfileVersion
from memory.redaction import Forgotten


def redact_profile(user_id: UUID, forgotten: Forgotten, now: datetime) -> int:
    """How many lines the profile lost. A consolidation under way has read them: it begins again."""
    Consolidation.objects.filter(user_id=user_id, status__in=Consolidation.ACTIVE).update(
        status=Consolidation.Status.PENDING, fence=F("fence") + 1, lease_expires_at=now
    )
    for version in ProfileVersion.objects.filter(profile=user_id):
        text = forgotten.redact(version.text)
        if text != version.text:
            version.text = text
            version.save(update_fields=["text"])
    profile = Profile.objects.select_for_update().filter(pk=user_id).first()
    if profile is None:
        return 0
    before = profile.text
    profile.text = forgotten.redact(before)
    if profile.text == before:
        return 0
    profile.written_version = 0  # its file is behind
    profile.save(update_fields=["text", "written_version"])
    return _line_count(before) - _line_count(profile.text)


def _line_count(text: str) -> int:
    return sum(bool(line.strip()) for line in text.split("\n"))


def delete_profile(user_id: UUID) -> int:
    """With its versions; how many lines it had."""
    profile = Profile.objects.filter(pk=user_id).first()
    Consolidation.objects.filter(user_id=user_id).delete()
    Profile.objects.filter(pk=user_id).delete()
    return _line_count(profile.text) if profile else 0
