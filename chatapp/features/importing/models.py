"""Imports of files, and the sources of imported conversations."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models

from chatapp.operations.database.ids import new_id
from chatapp.operations.workers.leases import is_out_of_lease


class ImportedConversation(models.Model):
    """The source of a conversation, so that it is not imported twice. The row is deleted with the conversation, so that
    the source can be imported again."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    source_key = models.CharField(max_length=64, help_text="A hash of the source and its own id.")
    conversation = models.OneToOneField(
        "chatapp.Conversation", on_delete=models.CASCADE, related_name="imported_from"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "source_key"], name="imported_conversation_once")
        ]


class Import(models.Model):
    """A file that a user uploads to import, its progress, and a report. The row is the job; the file stays below
    DATA_DIR until the job is done."""

    class State(models.TextChoices):
        UPLOADING = "uploading"
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    LEASE = timedelta(seconds=90)
    """Renewed about once a second while the file is read. Without renewal, another worker takes over."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    file_name = models.CharField(max_length=200)
    size_bytes = models.PositiveBigIntegerField()
    received_bytes = models.PositiveBigIntegerField(default=0, help_text="Of the file, from its beginning.")
    fingerprint = models.CharField(
        max_length=64, blank=True, help_text="What its sender knows the same file by, to go on with it."
    )
    kept_until = models.DateTimeField(
        null=True,
        help_text="Until when a file is kept that no worker is to read: one in parts, or one that failed.",
    )
    state = models.CharField(max_length=9, choices=State, default=State.WAITING)
    read_bytes = models.PositiveBigIntegerField(default=0)
    total_bytes = models.PositiveBigIntegerField(default=0, help_text="Of what the file holds, unpacked.")
    report = models.JSONField(default=dict)
    error = models.CharField(max_length=300, blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField()
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # The sweep: imports that no worker has.
            models.Index(
                fields=["lease_expires_at"],
                condition=models.Q(state__in=["waiting", "running"]),
                name="import_unfinished",
            ),
            # The sweep: abandoned files.
            models.Index(
                fields=["kept_until"],
                condition=models.Q(kept_until__isnull=False),
                name="import_kept",
            ),
            # A user's imports, newest first.
            models.Index(fields=["user", "-created_at", "-id"], name="import_by_user"),
        ]

    def __str__(self) -> str:
        return str(self.id)  # not the file name: it may quote the chat

    @classmethod
    def free(cls, now: datetime) -> models.QuerySet[Import]:
        """Return the unfinished imports that no worker has."""
        return cls.objects.filter(
            is_out_of_lease(now, cls.LEASE), state__in=[cls.State.WAITING, cls.State.RUNNING]
        )
