"""Writes title jobs, and the titles that come of them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F

from chatapp.conversations.access import lock_conversation
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation
from chatapp.features.titles.models import TitleJob
from chatapp.operations.forgetting_counts import check_forgetting_count
from chatapp.operations.jobs import wake_worker
from chatapp.realtime import event_log


def want_title(conversation: Conversation, now: datetime) -> None:
    """Note, in the transaction that ends its first answer, that a conversation is to be named."""
    # An answer that is tried again asks for the title once more.
    TitleJob.objects.bulk_create(
        [TitleJob(conversation=conversation, lease_expires_at=now)], ignore_conflicts=True
    )
    wake_worker("chatapp.features.titles.tasks.write_title", str(conversation.pk))


def claim_title(*, conversation_id: UUID, now: datetime) -> bool:
    """Claim the job, and return whether that worked: no other worker has it, and it is not done."""
    free = TitleJob.free(now).filter(pk=conversation_id)
    return bool(free.update(lease_expires_at=now + TitleJob.LEASE, attempts=F("attempts") + 1))


def end_title(*, conversation_id: UUID) -> None:
    """Note that the job is done; the title stays as it is."""
    TitleJob.objects.filter(pk=conversation_id).update(lease_expires_at=None)


def store_title(
    *, conversation: Conversation, title: str, last_position: int, forgotten_count: int, now: datetime
) -> bool:
    """Name the conversation, unless it was named or deleted meanwhile; return whether it was.

    `last_position` is of the last message that the title was made of. Raise NotFound, and ReadForgotten where
    something was forgotten since `forgotten_count` was read.
    """
    with transaction.atomic():
        # Before the conversation, as everybody locks them.
        check_forgetting_count(conversation.forgetting_keys, forgotten_count)
        row = lock_conversation(conversation.user, conversation.pk)
        if row.title != conversation.title or row.title_made_of is not None:
            return False
        row.title, row.title_made_of = title, last_position
        event_log.append(row, updated_event(row, now), changed=["title", "title_made_of"])
    return True
