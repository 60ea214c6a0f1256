"""Writes profiles. Each write makes a version, so that no text is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from uuid import UUID

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.long_term.models import Profile, ProfileVersion
from chatapp.long_term.selectors.profile import accessible_version
from chatapp.long_term.selectors.tombstones import tombstones_of
from chatapp.operations.errors import Conflict
from chatapp.recall.analysis import vocabulary
from memory.long_term.consolidation import name_sources


@transaction.atomic
def write_profile(*, user_id: UUID, text: str, now: datetime, version: int | None = None) -> Profile:
    """Replace the profile with the user's text. Raise Conflict if `version` is given and not current."""
    profile = lock_profile(user_id)
    if version is not None and version != profile.version:
        raise Conflict(
            "The profile was changed in the meantime. Reload it and repeat your change.",
            details={"version": profile.version},
        )
    set_text(profile, text, ProfileVersion.Author.USER, now)
    return profile


@transaction.atomic
def revert_profile(*, user: User, number: int, now: datetime) -> Profile:
    """Restore the text of an earlier version as a new one, so that this can be reverted, too. Raise NotFound."""
    profile = lock_profile(user.pk)
    then = accessible_version(user, number)
    set_text(profile, then.text, ProfileVersion.Author.USER, now, sources=then.sources)
    return profile


def lock_profile(user_id: UUID) -> Profile:
    profile, _ = Profile.objects.select_for_update().get_or_create(user_id=user_id)
    return profile


def set_text(
    profile: Profile,
    text: str,
    author: ProfileVersion.Author,
    now: datetime,
    *,
    notes: Mapping[str, str] | None = None,
    sources: Sequence[Sequence[str]] | None = None,
) -> bool:
    """Store a new text and its version; return whether the text is new. The caller holds the lock of the row.

    Remove forgotten lines from a consolidation's text. `sources` are those of each line, if known; otherwise new lines
    are traced to `notes`, texts by the ids of their entries.
    """
    if author == ProfileVersion.Author.CONSOLIDATION:
        text = tombstones_of(profile.user_id).filter_text(text)
    if text == profile.text:
        return False
    if sources is None:
        sources = name_sources(text, profile.text, profile.sources, notes or {}, vocabulary)
    profile.text, profile.sources = text, list(sources)
    profile.version += 1
    profile.save(update_fields=["text", "sources", "version"])
    ProfileVersion.objects.create(
        profile=profile,
        number=profile.version,
        text=text,
        sources=profile.sources,
        author=author,
        created_at=now,
    )
    return True


def forget_lines(
    user_id: UUID, gone: Callable[[str, Sequence[str]], bool], now: datetime
) -> tuple[int, set[str]]:
    """Drop the lines for which `gone(text, sources)` is true from the profile and all its versions. Return how many the
    profile lost, and the ids of all their sources. Call it in a transaction that forgets."""
    sources: set[str] = set()
    # Lock the profile before reading its versions, so that none is added meanwhile.
    profile = Profile.objects.select_for_update().filter(pk=user_id).first()
    if profile is None:
        return 0, sources
    for version in ProfileVersion.objects.filter(profile=user_id):
        text, left, dropped = without_lines(version.text, version.sources, gone)
        if text != version.text:
            version.text, version.sources = text, left
            version.save(update_fields=["text", "sources"])
            sources.update(*dropped)
    text, left, dropped = without_lines(profile.text, profile.sources, gone)
    if text != profile.text:
        set_text(profile, text, ProfileVersion.Author.FORGETTING, now, sources=left)
    return len(dropped), sources.union(*dropped)


def without_lines(
    text: str, sources: Sequence[Sequence[str]], gone: Callable[[str, Sequence[str]], bool]
) -> tuple[str, list[Sequence[str]], list[Sequence[str]]]:
    """Return the text without the lines that are gone, the sources of the remaining lines, and those of the others."""
    lines = list(zip_longest(text.split("\n"), sources[: text.count("\n") + 1], fillvalue=()))
    is_gone = [bool(str(line).strip()) and gone(str(line), ids) for line, ids in lines]
    left = [one for one, drop in zip(lines, is_gone, strict=True) if not drop]
    dropped = [ids for (_, ids), drop in zip(lines, is_gone, strict=True) if drop]
    return "\n".join(str(line) for line, _ in left), [ids for _, ids in left], dropped


def empty_profile(user_id: UUID, now: datetime) -> int:
    """Empty the profile and delete its versions. Return how many lines it had. Call it in a transaction that forgets
    everything."""
    profile = Profile.objects.select_for_update().filter(pk=user_id).first()
    if profile is None:
        return 0
    lines = sum(bool(line.strip()) for line in profile.text.split("\n"))
    # Keep counting: a new version 1 would look like the version 1 that a model or a page has read.
    profile.versions.all().delete()
    set_text(profile, "", ProfileVersion.Author.FORGETTING, now)
    return lines


def mark_profile_written(written: Profile) -> None:
    """Record which version the file shows. If the profile was changed meanwhile, do nothing: the file is stale."""
    same = Profile.objects.filter(pk=written.pk, version=written.version, text=written.text)
    same.update(written_version=written.version)
