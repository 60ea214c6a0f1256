"""Background tasks of webhooks. The row is the job; the sweep finds deliveries whose wake-up was lost."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from chatapp.features.webhooks import sending
from chatapp.features.webhooks.actions import delete_ended_webhooks, delete_old_deliveries
from chatapp.features.webhooks.selectors import due_deliveries
from chatapp.operations import clock
from chatapp.operations.workers.jobs import wake_worker


@shared_task
def deliver(delivery_id: str) -> None:
    sending.deliver(UUID(delivery_id))


@shared_task
def wake_waiting() -> None:
    now = clock.now()
    delete_ended_webhooks(now=now)
    for delivery_id in due_deliveries(now):
        wake_worker("chatapp.features.webhooks.tasks.deliver", str(delivery_id))
    delete_old_deliveries(now=now)
