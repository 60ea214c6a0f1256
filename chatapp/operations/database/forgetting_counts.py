"""Counts forgettings, so that text read before a forgetting is not written after it.

A forgetting raises the count of a user and of the shared memories to which the user adds. A reader first reads the
counts. The transaction that writes its result checks that they are unchanged. Counts are locked before all other rows,
in key order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar
from uuid import UUID

from django.db.models import Sum

from chatapp.operations.errors import ReadForgotten
from chatapp.operations.models import ForgettingCount

MAX_TRIES = 5
Made = TypeVar("Made")


def raise_forgetting_counts(keys: Iterable[UUID]) -> int:
    """Raise the counts and return their previous sum. Call this first in a transaction that forgets."""
    rows = _lock(keys)
    before = sum(row.count for row in rows)
    for row in rows:
        row.count += 1
        row.save(update_fields=["count"])
    return before


def lock_forgetting_counts(keys: Iterable[UUID]) -> None:
    """Lock the counts, so that a forgetting in progress finishes first. Call this first in a transaction that claims
    work."""
    _lock(keys)


def read_forgetting_count(keys: Iterable[UUID]) -> int:
    """Return the sum of the counts of users and shared memories with these keys."""
    return ForgettingCount.objects.filter(pk__in=list(keys)).aggregate(total=Sum("count"))["total"] or 0


def check_forgetting_count(keys: Iterable[UUID], count: int) -> None:
    """Raise ReadForgotten if something was forgotten since `read_forgetting_count` returned `count`. Call this first in
    the transaction that writes what was read since."""
    if sum(row.count for row in _lock(keys)) != count:
        raise ReadForgotten("Something was forgotten meanwhile.")


def until_nothing_is_forgotten(make: Callable[[], Made]) -> Made:
    """Call `make`, which reads and writes, and return its result. Try at most MAX_TRIES times while it raises
    ReadForgotten."""
    for _ in range(MAX_TRIES - 1):
        with suppress(ReadForgotten):
            return make()
    return make()


def _lock(keys: Iterable[UUID]) -> list[ForgettingCount]:
    rows = ForgettingCount.objects.select_for_update()
    # Create missing rows, because a row that does not exist cannot be locked.
    return [rows.get_or_create(pk=key)[0] for key in sorted(set(keys))]
