"""What was too large for a context: who may read it, and which file holds it."""

from __future__ import annotations

from django.db import models

from chatapp.models.conversations import Conversation
from chatapp.models.identity import new_id


class Offload(models.Model):
    """The id is the reference a model is given. `name` is the file's, within the conversation's folder."""

    class Kind(models.TextChoices):
        RESULT = "result", "a tool's result"
        IMAGE = "image", "an image a tool gave"
        CONTEXT = "context", "messages that left the context"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="offloads")
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=100)
    tool_name = models.CharField(max_length=100, blank=True)
    mime_type = models.CharField(max_length=100)
    size_bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            # The same image twice is one file and one reference; there is one context.jsonl.
            models.UniqueConstraint(fields=["conversation", "name"], name="offload_file_once"),
        ]
