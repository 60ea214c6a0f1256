"""Keep forgetting and those who read apart.

Who forgets raises the fences of a user and of the shared memories they add to. Who reads notes the fences first, and
checks in the transaction that writes what came of it that they are the same: nothing that was forgotten meanwhile is
written. Fences are locked before all other rows, in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Sum

from chatapp.operations.errors import ReadForgotten
from chatapp.operations.models import Fence


def raise_fences(keys: Iterable[UUID]) -> int:
    """The first statement of a transaction that forgets. Return how often something was forgotten there before."""
    fences = _lock(keys)
    before = sum(fence.count for fence in fences)
    for fence in fences:
        fence.count += 1
        fence.save(update_fields=["count"])
    return before


def hold_fences(keys: Iterable[UUID]) -> None:
    """The first statement of a transaction that claims work: a forgetting that has begun comes before it."""
    _lock(keys)


def read_fences(keys: Iterable[UUID]) -> int:
    """Return how often something was forgotten there."""
    return Fence.objects.filter(pk__in=list(keys)).aggregate(total=Sum("count"))["total"] or 0


def check_fences(keys: Iterable[UUID], count: int) -> None:
    """The first statement of a transaction that writes what was read after `read_fences` returned `count`. Raises
    ReadForgotten."""
    if sum(fence.count for fence in _lock(keys)) != count:
        raise ReadForgotten("Something was forgotten meanwhile.")


def _lock(keys: Iterable[UUID]) -> list[Fence]:
    fences = Fence.objects.select_for_update()
    return [fences.get_or_create(pk=key)[0] for key in sorted(set(keys))]
