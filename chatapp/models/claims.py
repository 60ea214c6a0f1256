"""What users claimed of one thing at one time: which statement took which one's place. Hashes and places, no text."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.models.conversations import Message
from chatapp.models.identity import new_id
from chatapp.models.memory import MemoryEntry


class StoredClaim(models.Model):
    """`start` to `end` of a message, or of an entry in its user's words, gives `key` the value `value`.

    Until `superseded_by`, a newer one about the same; both stay.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    message = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="claims")
    entry = models.ForeignKey(MemoryEntry, null=True, on_delete=models.CASCADE, related_name="claims")
    start = models.PositiveIntegerField()
    end = models.PositiveIntegerField()
    key = models.BigIntegerField()
    value = models.BigIntegerField()
    is_named = models.BooleanField(
        default=False, help_text="A model named it, with what took its place; not read from its words."
    )
    replaces = models.BooleanField(help_text="Whether it ends what was claimed before.")
    said_at = models.DateTimeField()
    superseded_by = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")

    class Meta:
        indexes = [
            # Everything claimed of one thing, in order.
            models.Index(fields=["user", "key", "said_at"], name="claim_by_key"),
            # Whether an entry's sentence is still so.
            models.Index(fields=["user", "value"], name="claim_by_value"),
        ]
