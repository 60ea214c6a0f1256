"""Writes title jobs and the resulting titles."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from chatapp.conversations.access import lock_conversation
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation
from chatapp.features.titles.models import TitleJob
from chatapp.operations.database.forgetting_counts import check_forgetting_count
from chatapp.operations.workers.jobs import wake_worker
from chatapp.realtime import event_log


def create_title_job(conversation: Conversation, now: datetime) -> None:
    """Create the title job of a conversation, in the transaction that ends its first answer."""
    # A retried answer requests the title again.
    TitleJob.objects.bulk_create(
        [TitleJob(conversation=conversation, lease_expires_at=now)], ignore_conflicts=True
    )
    wake_worker("chatapp.features.titles.tasks.write_title", str(conversation.pk))


def claim_title(*, conversation_id: UUID, now: datetime) -> bool:
    """Claim the job. Return False if it is done, has no attempts left, or another worker has it."""
    free = TitleJob.free(now).filter(pk=conversation_id)
    return bool(free.update(lease_expires_at=now + TitleJob.LEASE, attempts=F("attempts") + 1))


def end_title(*, conversation_id: UUID) -> None:
    """Mark the job as done; the title stays as it is."""
    TitleJob.objects.filter(pk=conversation_id).update(lease_expires_at=None)


def store_title(
    *, conversation: Conversation, title: str, last_position: int, forgotten_count: int, now: datetime
) -> bool:
    """Name the conversation and return True, unless it was named meanwhile.

    `last_position` is of the last message that the title derives from. Raise NotFound, and ReadForgotten if something
    was forgotten since `forgotten_count` was read.
    """
    with transaction.atomic():
        # Lock the counts before the conversation: this is the lock order everywhere.
        check_forgetting_count(conversation.forgetting_keys, forgotten_count)
        row = lock_conversation(conversation.user, conversation.pk)
        if row.title != conversation.title or row.title_made_of is not None:
            return False
        row.title, row.title_made_of = title, last_position
        event_log.append(row, updated_event(row, now), changed=["title", "title_made_of"])
    return True
