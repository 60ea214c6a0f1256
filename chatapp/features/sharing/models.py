"""The table of shared conversations."""

from __future__ import annotations

from django.db import models

from chatapp.operations.ids import new_id


class SharedConversation(models.Model):
    """What a link shows: one branch up to one position.

    It names messages and copies none: what is forgotten is gone from the snapshot, too.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.OneToOneField(
        "chatapp.Conversation", on_delete=models.CASCADE, related_name="shared"
    )
    branch = models.ForeignKey("chatapp.Branch", on_delete=models.CASCADE, related_name="+")
    last_position = models.BigIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
