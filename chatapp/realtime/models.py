"""Runs, the event log and the usage ledger."""

from __future__ import annotations

from django.db import models


class Event(models.Model):
    """A numbered fact about a conversation; `payload` is the event exactly as it is sent."""

    conversation = models.ForeignKey("chatapp.Conversation", on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=30)
    run = models.ForeignKey("chatapp.Run", null=True, on_delete=models.CASCADE, related_name="events")
    payload = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="event_seq_once")]
