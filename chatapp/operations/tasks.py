"""Periodic tasks that concern every package."""

from __future__ import annotations

import logging

from celery import shared_task

import chatapp.agent_presets.tasks
import chatapp.compaction.tasks
import chatapp.forgetting.tasks
import chatapp.long_term.tasks
import chatapp.operations.monitoring.metrics  # counts events of tasks
import chatapp.operations.workers.signals
import chatapp.recall.tasks
import chatapp.runs.tasks
from chatapp.accounts.actions import delete_ended_sessions, delete_expired_tokens
from chatapp.accounts.budgets.actions import delete_old_periods, release_expired
from chatapp.accounts.idempotency_keys import delete_old_keys
from chatapp.accounts.invitations.actions import delete_old_invitations
from chatapp.files.attachments import sweep_files
from chatapp.files.offloads import sweep_offloads
from chatapp.forgetting.trash.services import clean_up_idle
from chatapp.long_term.files import sweep_orphans
from chatapp.operations import clock
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.database.audit import delete_old_events
from chatapp.operations.database.journal import truncate_journal, truncate_patiently
from chatapp.providers.actions import sum_up_usage

log = logging.getLogger(__name__)

SWEEPS = (
    chatapp.runs.tasks.end_abandoned,
    chatapp.compaction.tasks.wake_waiting,
    chatapp.recall.tasks.wake_waiting,
    chatapp.long_term.tasks.wake_waiting,
    chatapp.agent_presets.tasks.wake_waiting,
    chatapp.forgetting.tasks.wake_waiting,
    release_expired,
)
"""Every sweep calls these with the time. Each must be quick, and wake a task for long work."""


@shared_task
def sweep() -> None:
    """Find work of rows that no worker has picked up or finished."""
    now = clock.now()
    for sweep_package in SWEEPS:
        sweep_package(now)
    truncate_journal()


@shared_task
def truncate_journal_of_deleted(_: str) -> None:
    truncate_patiently()


@shared_task
def clean_up() -> None:
    """Move idle conversations to the trash, and delete expired rows and unreferenced files."""
    now = clock.now()
    delete_expired_tokens(now=now)
    delete_ended_sessions(now=now)
    delete_old_events(now=now)
    delete_old_keys(now=now)
    delete_old_periods(now=now)
    delete_old_invitations(now=now)
    sum_up_usage(now=now)
    deleted = clean_up_idle(now=now, days=current("RETENTION_DAYS"), trash_days=current("TRASH_DAYS"))
    # Files last, because the deletions above may have left bytes unused.
    sweep_files(now=now)
    sweep_offloads(now=now)
    sweep_orphans()
    if deleted:
        log.info("Moved to the trash or deleted %d idle conversations.", deleted)
