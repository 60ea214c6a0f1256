"""Wakes workers. The row is the job; a wake-up that gets lost is found by the sweep."""

from __future__ import annotations

import logging
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)


def wake_worker(task_name: str, row_id: str) -> None:
    """Tells Celery a name and an id once the current transaction is committed."""
    transaction.on_commit(partial(_send, task_name, row_id))


def _send(task_name: str, row_id: str) -> None:
    try:
        current_app.send_task(f"chatapp.tasks.{task_name}", args=[row_id], retry=False)
    except (OperationalError, OSError) as error:
        log.warning("The broker is away (%s); the sweep will find %s %s.", error, task_name, row_id)
