"""What users change about themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from chatapp.models import User


def update_settings(*, user: User, changes: Mapping[str, Any]) -> User:
    """`changes` holds columns by name: name, time_zone."""
    with transaction.atomic():
        for name, value in changes.items():
            setattr(user, name, value)
        user.save(update_fields=list(changes))
    return user
