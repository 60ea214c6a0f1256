"""Changes users' settings: memory, name, time zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import note_pause
from chatapp.long_term.actions.stale_days import mark_days_stale
from chatapp.long_term.selectors.entries import all_days


@transaction.atomic
def update_memory_settings(*, user: User, changes: Mapping[str, bool], now: datetime) -> User:
    """Change memory_paused, reviews_memory or uses_profile; `changes` has values by column. Return the user."""
    locked = User.objects.select_for_update().get(pk=user.pk)
    for name, value in changes.items():
        setattr(locked, name, value)
    locked.save(update_fields=list(changes))
    if "memory_paused" in changes:
        note_pause(user, None, changes["memory_paused"], now)
    return locked


def update_settings(*, user: User, changes: Mapping[str, Any]) -> User:
    """Change the name or time zone; `changes` has values by column. Daily files show local times, so that the sweep
    rewrites them after a new time zone."""
    with transaction.atomic():
        if changes.get("time_zone", user.time_zone) != user.time_zone:
            mark_days_stale(user.pk, all_days(user.pk))
        for name, value in changes.items():
            setattr(user, name, value)
        user.save(update_fields=list(changes))
    return user
