"""Background tasks of titles."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from chatapp.features.titles import writing
from chatapp.features.titles.selectors import waiting_titles
from chatapp.operations import clock
from chatapp.operations.workers.jobs import wake_worker


@shared_task
def write_title(conversation_id: str) -> None:
    writing.write_title(UUID(conversation_id))


@shared_task
def wake_waiting() -> None:
    """Wake workers for jobs whose worker was not woken or died."""
    for conversation_id in waiting_titles(clock.now()):
        wake_worker("chatapp.features.titles.tasks.write_title", str(conversation_id))
