"""What OpenAI's clients store with conversations and responses besides messages."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.operations.database.ids import new_id


class StoredResponse(models.Model):
    """A response that can be read again and continued: a run of a conversation, with an id of its own."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    run = models.OneToOneField("chatapp.Run", on_delete=models.CASCADE, related_name="+")
    # No foreign key, because the id stays after that response is deleted.
    previous = models.UUIDField(null=True, help_text="The id of the response that it continues.")
    owns_turn = models.BooleanField(
        help_text="Deleting it forgets question and answer; false where the client named a conversation."
    )
    metadata = models.JSONField(default=dict)
    created_at = models.DateTimeField()


class ConversationMetadata(models.Model):
    """Metadata that a client stores with a conversation. The service does not read it."""

    conversation = models.OneToOneField(
        "chatapp.Conversation", on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    metadata = models.JSONField(default=dict)
