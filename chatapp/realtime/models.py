"""The event log."""

from __future__ import annotations

from django.db import models


class Event(models.Model):
    """A numbered fact about a conversation. `payload` is the event without the texts that other rows hold; `replay`
    adds them."""

    conversation = models.ForeignKey("chatapp.Conversation", on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=30)
    run = models.ForeignKey("chatapp.Run", null=True, on_delete=models.CASCADE, related_name="events")
    payload = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        # Replay reads along the index of this constraint, too.
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="event_seq_once")]
