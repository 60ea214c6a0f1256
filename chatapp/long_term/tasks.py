"""Background tasks of the long-term memory."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from celery import shared_task

from chatapp.long_term import consolidation
from chatapp.long_term.files import sweep_unwritten
from chatapp.long_term.selectors.profile import waiting_consolidations
from chatapp.operations.workers.jobs import wake_worker


@shared_task
def consolidate(consolidation_id: str) -> None:
    consolidation.consolidate(UUID(consolidation_id))


@shared_task
def consolidate_due() -> None:
    consolidation.queue_due()


def wake_waiting(now: datetime) -> None:
    """Wake a worker for each waiting consolidation, and write the files that lag behind their rows."""
    for consolidation_id in waiting_consolidations(now):
        wake_worker("chatapp.long_term.tasks.consolidate", str(consolidation_id))
    sweep_unwritten()
