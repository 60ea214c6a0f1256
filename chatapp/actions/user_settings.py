"""What users change about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from chatapp.actions.memory import mark_days_stale
from chatapp.models import User
from chatapp.selectors.memory import all_days


def update_settings(*, user: User, changes: Mapping[str, Any]) -> User:
    """`changes` holds columns by name: name, time_zone. Daily files tell the time where their user lives: after a move
    the sweep writes them anew."""
    with transaction.atomic():
        if changes.get("time_zone", user.time_zone) != user.time_zone:
            mark_days_stale(user.pk, all_days(user.pk))
        for name, value in changes.items():
            setattr(user, name, value)
        user.save(update_fields=list(changes))
    return user
