"""Reads webhooks and their deliveries."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from chatapp.accounts.models import User
from chatapp.accounts.selectors import valid_tokens
from chatapp.features.webhooks.models import Webhook, WebhookDelivery
from chatapp.operations import clock
from chatapp.operations.database.access import find_row
from chatapp.realtime.models import Event
from chatapp.realtime.replay import full_events

NO_ANSWER = "The address does not answer"
"""Prefix of the error if the network or a silent or slow receiver ended an attempt. The address then rests."""
NEW_FOR = timedelta(minutes=5)
"""Longer than an address rests. A slow success of an older delivery, which waited long, delays no new one."""


def live_webhooks() -> QuerySet[Webhook]:
    """Return the webhooks created in the browser, and those whose token has not expired."""
    return Webhook.objects.filter(Q(token=None) | Q(token__in=valid_tokens(clock.now())))


def webhooks_of(user: User) -> list[Webhook]:
    """Return the user's webhooks, oldest first."""
    return list(Webhook.objects.filter(user=user).order_by("created_at", "pk"))


def accessible_webhook(user: User, webhook_id: str) -> Webhook:
    """Return a webhook of the user. Raise NotFound."""
    return find_row(Webhook.objects.filter(user=user), webhook_id)


def accessible_delivery(user: User, webhook_id: str, delivery_id: str) -> WebhookDelivery:
    """Return a delivery of a webhook of the user. Raise NotFound."""
    return find_row(deliveries_of(user, webhook_id), delivery_id)


def deliveries_of(user: User, webhook_id: str) -> QuerySet[WebhookDelivery]:
    """Return the log of a webhook of the user. Raise NotFound."""
    return WebhookDelivery.objects.filter(webhook=accessible_webhook(user, webhook_id))


def deliveries_to_send() -> QuerySet[WebhookDelivery]:
    """Return pending deliveries with their webhooks, without those whose user is inactive, whose conversation is in the
    trash or in deletion, or whose webhook has ended."""
    rows = WebhookDelivery.objects.select_related("webhook").filter(
        state=WebhookDelivery.State.PENDING, webhook__user__is_active=True, webhook__in=live_webhooks()
    )
    # Conversations in the trash or in deletion have no user.
    return rows.filter(conversation__user__isnull=False)


def event_of(delivery: WebhookDelivery) -> dict[str, Any] | None:
    """Return the event in its present state, without text forgotten meanwhile; None if it is gone."""
    rows = list(Event.objects.filter(conversation=delivery.conversation_id, seq=delivery.seq))
    return next(iter(full_events(rows)), None)


def due_deliveries(now: datetime, user_id: UUID | None = None) -> list[UUID]:
    """Return the delivery that has been due longest, for each user or for one. The end of an attempt wakes a worker for
    the next one."""
    due = deliveries_to_send().filter(WebhookDelivery.is_due(now)).order_by("next_attempt_at", "pk")
    if user_id is not None:
        return list(due.filter(webhook__user=user_id).values_list("pk", flat=True)[:1])
    first: dict[UUID, UUID] = {}
    for user, delivery_id in due.values_list("webhook__user", "pk").iterator():
        first.setdefault(user, delivery_id)
    return list(first.values())


def end_of_rest(now: datetime) -> Coalesce:
    """Annotate webhooks with the time when a resting address is tried again; NULL for others."""
    later = WebhookDelivery.objects.filter(webhook=OuterRef("pk"), next_attempt_at__gt=now)
    was_silent = later.filter(state=WebhookDelivery.State.PENDING, error__startswith=NO_ANSWER)
    # A slow success stores the end of the rest. The log is long, so use two queries, each with an index.
    was_slow = later.filter(state=WebhookDelivery.State.DELIVERED, created_at__gt=now - NEW_FOR)
    return Coalesce(_first_time(was_silent), _first_time(was_slow))


def _first_time(rows: QuerySet[WebhookDelivery]) -> Subquery:
    return Subquery(rows.order_by("next_attempt_at", "pk").values("next_attempt_at")[:1])
