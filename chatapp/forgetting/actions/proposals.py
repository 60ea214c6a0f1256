"""Stores proposals to forget, and records which were confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.events import ForgetProposed
from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.models import ForgetProposal, ForgetReceipt
from chatapp.operations.errors import NotFound
from chatapp.realtime import event_log


def record_proposal(*, user: User, items: Sequence[dict[str, Any]], now: datetime) -> ForgetProposal:
    with transaction.atomic():
        row = ForgetProposal.objects.create(user=user, items=list(items), created_at=now)
        record_created_id(row.pk)
    return row


def propose_in_chat(*, asked: Message, items: Sequence[dict[str, Any]], now: datetime) -> None:
    """Store a proposal and append its event to the conversation, once per message. Do nothing if the conversation was
    deleted or moved to the trash, or the message already has a proposal."""
    with transaction.atomic():
        owned = Conversation.objects.filter(pk=asked.conversation_id, user__isnull=False)
        conversation = owned.select_for_update().first()
        if conversation is None or ForgetProposal.objects.filter(asked_in=asked.pk).exists():
            return
        proposal = ForgetProposal.objects.create(
            user_id=conversation.owner_id,
            conversation=conversation,
            asked_in=asked.pk,
            items=list(items),
            created_at=now,
        )
        event_log.append(
            conversation,
            ForgetProposed(
                conversation_id=str(conversation.pk),
                at=now,
                proposal_id=str(proposal.pk),
                message_id=str(asked.pk),
                item_count=len(items),
            ),
        )


def note_confirmed(proposal: ForgetProposal, receipt: ForgetReceipt) -> None:
    """Record the receipt of a confirmed proposal, in the transaction that forgets. Raise NotFound if another process
    has confirmed it meanwhile."""
    if not ForgetProposal.objects.filter(pk=proposal.pk, receipt=None).update(receipt=receipt):
        raise NotFound
