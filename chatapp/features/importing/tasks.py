"""Background tasks of imports. The row is the job; the sweep finds imports whose wake-up was lost."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from chatapp.features.importing import job
from chatapp.operations import clock


@shared_task
def import_some(import_id: str) -> None:
    job.import_some(UUID(import_id))


@shared_task
def wake_waiting() -> None:
    job.sweep(clock.now())
