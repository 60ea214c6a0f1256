"""Keeps forgetting and the claims of runs apart: a run is claimed before a forgetting, which then ends it where it may
have read what goes, or after it, when nothing of it can be read any more.

The order of locks is this clock, then conversations.
"""

from __future__ import annotations

from uuid import UUID

from chatapp.errors import ReadForgotten
from chatapp.models import ForgetClock


def begin_forgetting(user_id: UUID) -> None:
    """The first statement of a transaction that forgets."""
    clock = _lock(user_id)
    clock.count += 1
    clock.save(update_fields=["count"])


def check_nothing_forgotten(user_id: UUID, count: int) -> None:
    """The first statement of a transaction that claims a run. Raises ReadForgotten."""
    if _lock(user_id).count != count:
        raise ReadForgotten("Something was forgotten meanwhile.")


def _lock(user_id: UUID) -> ForgetClock:
    clock, _ = ForgetClock.objects.select_for_update().get_or_create(user_id=user_id)
    return clock
