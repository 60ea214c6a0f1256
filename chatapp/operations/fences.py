"""Keep forgetting and reading apart.

Forgetting raises the fences of a user and of the shared memories that the user adds to. A reader notes the fences
first, and checks in the transaction that writes its result that they are the same: nothing that was forgotten meanwhile
is written. Fences are locked before all other rows, in the order of their keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Sum

from chatapp.operations.errors import ReadForgotten
from chatapp.operations.models import Fence


def raise_fences(keys: Iterable[UUID]) -> int:
    """Raise the fences, and return how often something was forgotten before. To be called first in a transaction that
    forgets."""
    fences = _lock(keys)
    before = sum(fence.count for fence in fences)
    for fence in fences:
        fence.count += 1
        fence.save(update_fields=["count"])
    return before


def hold_fences(keys: Iterable[UUID]) -> None:
    """Lock the fences, so that a forgetting that has begun comes first. To be called first in a transaction that claims
    work."""
    _lock(keys)


def read_fences(keys: Iterable[UUID]) -> int:
    """Return how often something was forgotten by users or in shared memories with these keys."""
    return Fence.objects.filter(pk__in=list(keys)).aggregate(total=Sum("count"))["total"] or 0


def check_fences(keys: Iterable[UUID], count: int) -> None:
    """Raise ReadForgotten where something was forgotten since `read_fences` returned `count`. To be called first in a
    transaction that writes what was read since."""
    if sum(fence.count for fence in _lock(keys)) != count:
        raise ReadForgotten("Something was forgotten meanwhile.")


def _lock(keys: Iterable[UUID]) -> list[Fence]:
    fences = Fence.objects.select_for_update()
    return [fences.get_or_create(pk=key)[0] for key in sorted(set(keys))]
