"""Conversations that no door shows, because they are being deleted or imported."""

from __future__ import annotations

from django.db import models

from chatapp.models.forgetting import ForgetReceipt


class Removal(models.Model):
    """The work of deleting one conversation that has no user any more, done in pieces.

    An import begins with one, too, and removes it when it is complete: what an import leaves half done is deleted.
    Ids instead of foreign keys: it outlives the conversation, whose files go last, and says whose it was.
    """

    class Phase(models.TextChoices):
        IMPORT = "import", "rows are still being added"
        HIDE = "hide", "the index is told not to score it"
        TRACES = "traces", "what was made of it elsewhere is redacted"
        INDEX = "index", "its postings and documents go"
        ROWS = "rows", "its messages and all other rows go"
        FILES = "files", "its files go"

    conversation_id = models.UUIDField(unique=True)
    user_id = models.UUIDField(db_index=True)  # what is left of an account that is being deleted?
    phase = models.CharField(max_length=8, choices=Phase)
    forgets = models.BooleanField(default=False, help_text="Redact what was made of it elsewhere.")
    raises_tombstones = models.BooleanField(default=False)
    for_good = models.BooleanField(default=False)
    tombstone_count = models.PositiveIntegerField(default=0)
    entries = models.JSONField(default=dict, help_text="Deleted memory entries: text by id, until TRACES.")
    repeating = models.JSONField(default=list, help_text="Conversations where an entry was said, too.")
    receipt = models.ForeignKey(ForgetReceipt, null=True, on_delete=models.SET_NULL, related_name="+")
    lease_expires_at = models.DateTimeField(db_index=True)  # the sweep: which has nobody at work?
    created_at = models.DateTimeField(auto_now_add=True)
