"""Addresses that receive events, and the outbox of events to send."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.accounts.models import ApiToken
from chatapp.operations.database.ids import new_id
from chatapp.operations.workers.leases import is_out_of_lease


class Webhook(models.Model):
    """An address of a user. `secret_encrypted` signs its deliveries. It is deleted with the token that created it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks")
    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, null=True, related_name="webhooks")
    url = models.CharField(max_length=2_000)
    events = models.JSONField(default=list)
    secret_encrypted = models.TextField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.id)  # not the address: it may contain a key


class WebhookDelivery(models.Model):
    """One event for one address. It references the event, whose text is read when it is sent."""

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"

    LEASE = timedelta(minutes=2)
    """Longer than an attempt may take. After it, another worker tries again."""
    PAUSES = (
        timedelta(seconds=5),
        timedelta(seconds=30),
        timedelta(minutes=5),
        timedelta(minutes=30),
        timedelta(hours=2),
        timedelta(hours=8),
        timedelta(hours=24),
    )
    """Pauses after failed attempts. The attempt after the last pause is the last one."""
    LONGEST_REST = timedelta(minutes=30)
    """The longest wait of a new delivery for a resting address. A failed one waits for its own next attempt."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    conversation = models.ForeignKey("chatapp.Conversation", on_delete=models.CASCADE, related_name="+")
    seq = models.PositiveBigIntegerField(help_text="The number of the event in its conversation.")
    type = models.CharField(max_length=40)
    state = models.CharField(max_length=9, choices=State, default=State.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_attempt_at = models.DateTimeField()
    status_code = models.PositiveIntegerField(null=True, help_text="Of the last answer.")
    error = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # The sweep: due deliveries.
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(state="pending"),
                name="webhook_delivery_due",
            ),
            # The delivery log, and deliveries old enough to delete.
            models.Index(fields=["webhook", "-created_at", "-id"], name="webhook_delivery_log"),
        ]

    @classmethod
    def is_due(cls, now: datetime) -> Q:
        """Match deliveries to try: their time has come, their worker is gone, or a clock that was ahead gave them a
        time later than any pause."""
        is_out = partial(is_out_of_lease, now, column="next_attempt_at")
        # While the error is empty, the outcome of the latest attempt is unknown, and the time is that of its lease.
        is_lost = Q(is_out(cls.LEASE), attempts__gt=0, error="")
        return is_out(cls.PAUSES[-1]) | is_lost | Q(is_out(cls.LONGEST_REST), attempts=0)
