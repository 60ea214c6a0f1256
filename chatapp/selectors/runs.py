"""Runs that need somebody: queued without a process, or held by a dead one."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from chatapp.models import Run

ADOPT_AFTER = timedelta(seconds=3)
GIVE_UP_AFTER = timedelta(seconds=45)


def orphaned_runs(now: datetime) -> list[UUID]:
    """Queued, and the process that accepted them did not start them."""
    late = Run.objects.filter(status=Run.Status.QUEUED, created_at__lt=now - ADOPT_AFTER)
    return list(late.order_by("created_at", "pk").values_list("pk", flat=True)[:20])


def dead_runs(now: datetime) -> list[tuple[UUID, int]]:
    """`(run_id, fence)` of runs whose lease ran out."""
    dead = Run.objects.filter(status=Run.Status.RUNNING, lease_expires_at__lt=now)
    return list(dead.order_by("lease_expires_at", "pk").values_list("pk", "fence")[:200])


def abandoned_runs(now: datetime) -> list[tuple[UUID, int]]:
    """Queued for so long that no process is going to take them."""
    late = Run.objects.filter(status=Run.Status.QUEUED, created_at__lt=now - GIVE_UP_AFTER)
    return list(late.order_by("created_at", "pk").values_list("pk", "fence")[:200])


def unfinished_runs() -> list[tuple[UUID, int]]:
    """Running, whoever holds them: for a process that knows it is the only one."""
    return list(Run.objects.filter(status=Run.Status.RUNNING).values_list("pk", "fence"))
