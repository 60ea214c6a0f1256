"""Takes what was forgotten out of a user's profile and all its versions, inside the transaction that forgets."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from chatapp.long_term.models import Consolidation, Profile, ProfileVersion
from memory.redaction import Forgotten


def redact_profile(user_id: UUID, forgotten: Forgotten, now: datetime) -> int:
    """How many lines the profile lost."""
    for row in Consolidation.objects.filter(user=user_id).exclude(error=""):
        # A provider's refusal may quote what it was sent.
        row.error = forgotten.redact(row.error)
        row.save(update_fields=["error"])
    for version in ProfileVersion.objects.filter(profile=user_id):
        text = forgotten.redact(version.text)
        if text != version.text:
            version.text = text
            version.save(update_fields=["text"])
    profile = Profile.objects.select_for_update().filter(pk=user_id).first()
    if profile is None:
        return 0
    before = profile.text
    text = forgotten.redact(before)
    if text == before:
        return 0
    _set_forgotten(profile, text, now)
    return _line_count(before) - _line_count(text)


def _set_forgotten(profile: Profile, text: str, now: datetime) -> None:
    """As a version of its own: a page that still shows the one before cannot write it back."""
    profile.text = text
    profile.version += 1
    profile.save(update_fields=["text", "version"])
    ProfileVersion.objects.create(
        profile=profile,
        number=profile.version,
        text=text,
        author=ProfileVersion.Author.FORGETTING,
        created_at=now,
    )


def _line_count(text: str) -> int:
    return sum(bool(line.strip()) for line in text.split("\n"))


def empty_profile(user_id: UUID, now: datetime) -> int:
    """With its versions, but for their number; how many lines it had."""
    Consolidation.objects.filter(user_id=user_id).delete()
    profile = Profile.objects.select_for_update().filter(pk=user_id).first()
    if profile is None:
        return 0
    lines = _line_count(profile.text)
    profile.versions.all().delete()
    _set_forgotten(profile, "", now)
    return lines
