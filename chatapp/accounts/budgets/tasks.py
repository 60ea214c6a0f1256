"""The sweep's work for budgets."""

from __future__ import annotations

from datetime import datetime

from chatapp.accounts.budgets.actions import release_expired


def release_left_holds(now: datetime) -> None:
    release_expired(now)
