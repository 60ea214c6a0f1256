"""The table of shared conversations."""

from __future__ import annotations

from django.db import models

from chatapp.operations.database.ids import new_id


class SharedConversation(models.Model):
    """A link and its snapshot: one branch up to one position.

    It references messages instead of copying them, so that forgotten text disappears from the snapshot, too. The title
    is a copy, because the conversation may be renamed; forgetting reaches it through the signal `words_forgotten`.
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
