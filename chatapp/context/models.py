"""The requests sent to models: references to stored texts, plus each text that is stored nowhere else, once."""

from __future__ import annotations

from django.db import models

from chatapp.operations.database.ids import new_id


class SentRequest(models.Model):
    """One request of a run. `sha256` is the hash of the sent bytes, which are rebuilt from `manifest`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey("chatapp.Run", on_delete=models.CASCADE, related_name="sent_requests")
    n = models.PositiveIntegerField(help_text="Its number in its run, from 1.")
    purpose = models.CharField(max_length=12)
    model_name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    tokens = models.PositiveIntegerField(help_text="As estimated when it was sent.")
    # Text, not JSON: the order of the keys determines the order of the bytes.
    manifest = models.TextField()
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "n"], name="request_number_once")]


class RequestText(models.Model):
    """A text that requests of one conversation contain and that is not a stored message as it is: a system prompt, a
    summary, recalled text, a message that was cut. `sha256` is the hash of the text. `content` is a JSON list of its
    segments, each either text that is stored nowhere else or [key, start, end] of a text in another row (see
    `agents.requests.references`, `chatapp.context.sources`). If it is deleted, the request still shows that it was
    there."""

    conversation = models.ForeignKey(
        "chatapp.Conversation", on_delete=models.CASCADE, related_name="request_texts"
    )
    sha256 = models.CharField(max_length=64)
    source = models.CharField(max_length=12)
    content = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "sha256"], name="request_text_once"),
        ]
