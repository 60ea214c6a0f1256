"""Puts events into the outbox, in the transaction that stores them, so that every committed event is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.dispatch import receiver

from agents.events import Compact, Fact, MemoryWritten, MessageCompleted, RunFinished
from chatapp.conversations.models import Conversation
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.features.webhooks.selectors import end_of_rest, live_webhooks
from chatapp.operations import clock
from chatapp.operations.caching.editions import cached
from chatapp.operations.workers.jobs import wake_worker
from chatapp.realtime.event_log import facts_appended


def event_name(fact: Fact) -> str | None:
    """Return the name of a fact in webhooks; None if it is not sent."""
    match fact:
        case MessageCompleted() | MemoryWritten():
            return fact.type
        case RunFinished() if fact.status in ("failed", "interrupted"):
            return "run.failed"
        case Compact() if fact.state != "started":
            return fact.type
    return None


@receiver(facts_appended)
def fill_outbox(sender: Any, *, conversation: Conversation, facts: Sequence[Fact], **_: Any) -> None:
    named = [(fact, name) for fact in facts if (name := event_name(fact)) is not None]
    if not named:
        return
    # Most users have no webhook, and their events should cost no query.
    owners = cached("webhooks", lambda: frozenset(Webhook.objects.values_list("user", flat=True)))
    if conversation.user_id not in owners:
        return
    # Lock the webhooks, so that none is deleted before the commit, in a fixed order because other chats lock them, too.
    webhooks = (
        live_webhooks()
        .select_for_update(of=("self",))
        .filter(user=conversation.user_id)
        .annotate(rests_until=end_of_rest(clock.now()))
        .order_by("pk")
    )
    deliveries = [
        WebhookDelivery(
            webhook=webhook,
            conversation=conversation,
            seq=fact.seq or 0,
            type=name,
            next_attempt_at=min(webhook.rests_until or fact.at, fact.at + WebhookDelivery.LONGEST_REST),
            created_at=fact.at,
        )
        for webhook in webhooks
        for fact, name in named
        if name in webhook.events
    ]
    for delivery in WebhookDelivery.objects.bulk_create(deliveries) if deliveries else ():
        wake_worker("chatapp.features.webhooks.tasks.deliver", str(delivery.pk))
