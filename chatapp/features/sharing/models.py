"""The table of shared conversations."""

from __future__ import annotations

from django.db import models

from chatapp.operations.ids import new_id


class SharedConversation(models.Model):
    """What a link shows: one branch up to one position.

    It names messages and copies none: what is forgotten is gone from the snapshot, too. The title is a copy, because
    no row has it any more once the conversation has another one; forgetting reaches it by the signal it sends.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.OneToOneField(
        "chatapp.Conversation", on_delete=models.CASCADE, related_name="shared"
    )
    branch = models.ForeignKey("chatapp.Branch", on_delete=models.CASCADE, related_name="+")
    last_position = models.BigIntegerField()
    title = models.CharField(max_length=200, blank=True)
    title_made_of = models.PositiveBigIntegerField(
        null=True, help_text="As in the conversation: the last position that it was made of."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
