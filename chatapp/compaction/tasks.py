"""Background tasks of compaction."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from celery import shared_task

from chatapp.compaction import compactor, left_context, rewriting
from chatapp.compaction.selectors import compactions_to_keep, quiet_conversations, waiting_compactions
from chatapp.operations.workers.jobs import wake_worker


@shared_task
def compact(compaction_id: str) -> None:
    compactor.compact(UUID(compaction_id))


@shared_task
def keep_left_context(compaction_id: str) -> None:
    left_context.keep_left_context(UUID(compaction_id))


@shared_task
def plan_compaction(conversation_id: str) -> None:
    compactor.queue_next_compaction(UUID(conversation_id))


@shared_task
def summarise_rest(conversation_id: str) -> None:
    compactor.summarise_rest(UUID(conversation_id))


@shared_task
def rewrite_summary(compaction_id: str) -> None:
    rewriting.rewrite_summary(UUID(compaction_id))


def wake_waiting(now: datetime) -> None:
    for compaction_id in waiting_compactions(now):
        wake_worker("chatapp.compaction.tasks.compact", str(compaction_id))
    for compaction_id in rewriting.waiting_rewrites(now):
        wake_worker("chatapp.compaction.tasks.rewrite_summary", str(compaction_id))
    for conversation_id in quiet_conversations(now):
        wake_worker("chatapp.compaction.tasks.summarise_rest", str(conversation_id))
    for compaction_id in compactions_to_keep(now - left_context.FIRST_ATTEMPT):
        wake_worker("chatapp.compaction.tasks.keep_left_context", str(compaction_id))
