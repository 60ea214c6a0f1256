"""Tables of uploads and of offloaded results."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.operations.database.ids import new_id

MAX_FILE_NAME_CHARS = 255


class Attachment(models.Model):
    """An upload of one user. Equal bytes are stored once, under their hash."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="attachments")
    messages = models.ManyToManyField("chatapp.Message", related_name="attachments")
    folders = models.ManyToManyField("chatapp.Folder", related_name="files")
    name = models.CharField(max_length=MAX_FILE_NAME_CHARS)
    sha256 = models.CharField(max_length=64, db_index=True)  # finds other rows with these bytes
    mime_type = models.CharField(max_length=100)
    width = models.PositiveIntegerField(default=0)
    height = models.PositiveIntegerField(default=0)
    size_bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    @property
    def is_image(self) -> bool:
        """Return whether the file is an image encoded by this service. No other file is stored with such a type."""
        return self.mime_type.startswith("image/")


class Offload(models.Model):
    """An offloaded file, called `name` in its conversation's folder. The id is the reference that a model gets."""

    class Kind(models.TextChoices):
        RESULT = "result", "a tool's result"
        IMAGE = "image", "an image a tool gave"
        CONTEXT = "context", "messages that left the context"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(
        "chatapp.Conversation", on_delete=models.CASCADE, related_name="offloads"
    )
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=100)
    tool_name = models.CharField(max_length=100, blank=True)
    mime_type = models.CharField(max_length=100)
    size_bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            # Equal images share one file and one reference, and there is one context.jsonl.
            models.UniqueConstraint(fields=["conversation", "name"], name="offload_file_once"),
        ]
