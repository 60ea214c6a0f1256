"""Background tasks of forgetting and deletion."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from celery import shared_task

from chatapp.forgetting import removing, services
from chatapp.forgetting.proposing import propose_for_message
from chatapp.forgetting.selectors.forgotten import has_abandoned_index, waiting_removals
from chatapp.forgetting.trash.selectors import due_for_purge
from chatapp.forgetting.trash.services import purge_due
from chatapp.operations import clock
from chatapp.operations.database.work_budget import IN_WORKER
from chatapp.operations.workers.jobs import wake_worker


@shared_task
def propose_forgetting(message_id: str) -> None:
    propose_for_message(UUID(message_id))


@shared_task
def remove_rest(removal_id: str) -> None:
    services.remove_rest(int(removal_id), now=clock.now())


@shared_task
def delete_abandoned_indexes(_: str) -> None:
    if not removing.delete_abandoned_indexes(IN_WORKER):
        wake_worker("chatapp.forgetting.tasks.delete_abandoned_indexes", "")


@shared_task
def purge_trash(_: str) -> None:
    if purge_due(now=clock.now()):
        wake_worker("chatapp.forgetting.tasks.purge_trash", "")


def wake_waiting(now: datetime) -> None:
    if due_for_purge(now, limit=1):
        wake_worker("chatapp.forgetting.tasks.purge_trash", "")
    for removal_id in waiting_removals(now):
        wake_worker("chatapp.forgetting.tasks.remove_rest", str(removal_id))
    if has_abandoned_index():
        wake_worker("chatapp.forgetting.tasks.delete_abandoned_indexes", "")
