"""Counts how often something was forgotten, so that nothing is written that was read before it.

Forgetting raises the count of a user and of the shared memories that the user adds to. A reader notes the counts first,
and checks in the transaction that writes its result that they are the same. Counts are locked before all other rows, in
the order of their keys.
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
    """Raise the counts, and return their sum before. To be called first in a transaction that forgets."""
    rows = _lock(keys)
    before = sum(row.count for row in rows)
    for row in rows:
        row.count += 1
        row.save(update_fields=["count"])
    return before


def lock_forgetting_counts(keys: Iterable[UUID]) -> None:
    """Lock the counts, so that a forgetting that has begun comes first. To be called first in a transaction that claims
    work."""
    _lock(keys)


def read_forgetting_count(keys: Iterable[UUID]) -> int:
    """Return how often something was forgotten by users or in shared memories with these keys."""
    return ForgettingCount.objects.filter(pk__in=list(keys)).aggregate(total=Sum("count"))["total"] or 0


def check_forgetting_count(keys: Iterable[UUID], count: int) -> None:
    """Raise ReadForgotten where something was forgotten since `read_forgetting_count` returned `count`. To be called
    first in a transaction that writes what was read since."""
    if sum(row.count for row in _lock(keys)) != count:
        raise ReadForgotten("Something was forgotten meanwhile.")


def until_nothing_is_forgotten(make: Callable[[], Made]) -> Made:
    """Return what `make` returns, which reads and writes; again where it raises ReadForgotten. Raise that where its
    users go on forgetting meanwhile."""
    for _ in range(MAX_TRIES - 1):
        with suppress(ReadForgotten):
            return make()
    return make()


def _lock(keys: Iterable[UUID]) -> list[ForgettingCount]:
    rows = ForgettingCount.objects.select_for_update()
    # Made where there is none: a row that does not exist cannot be locked.
    return [rows.get_or_create(pk=key)[0] for key in sorted(set(keys))]
