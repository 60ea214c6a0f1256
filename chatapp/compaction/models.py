"""Checkpoints: what summaries cover, and how each was made."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from chatapp.operations.database.ids import new_id
from chatapp.operations.workers.leases import is_out_of_lease


class Compaction(models.Model):
    """A checkpoint. Its span is what it adds to `previous`; its summary replaces both in the context.

    No messages are deleted, so it can be edited and undone.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        UNDONE = "undone"

    ACTIVE = (Status.PENDING, Status.RUNNING)
    CLEARED = "cleared"
    """The strategy of a checkpoint without a summary: the user started a new context."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(
        "chatapp.Conversation", on_delete=models.CASCADE, related_name="compactions"
    )
    branch = models.ForeignKey("chatapp.Branch", on_delete=models.CASCADE, related_name="+")
    previous = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="+")
    model = models.ForeignKey("chatapp.ModelConfig", null=True, on_delete=models.SET_NULL, related_name="+")
    first_position = models.PositiveBigIntegerField()
    last_position = models.PositiveBigIntegerField()
    message_count = models.PositiveIntegerField()
    kept_count = models.PositiveIntegerField()
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    strategy = models.CharField(max_length=12)
    keep_hint = models.TextField(blank=True, help_text="What the user asked to keep.")
    summary = models.TextField(blank=True)
    summary_tokens = models.PositiveIntegerField(default=0)
    summary_max_tokens = models.PositiveIntegerField(
        default=0, help_text="A hook's own limit; 0 = the policy's."
    )
    is_partial = models.BooleanField(default=False, help_text="More of the same backlog is left after it.")
    reminder = models.TextField(blank=True, help_text="Text that follows the summary in the context.")
    fallback_reason = models.TextField(blank=True, help_text="Why the extractive summary took over.")
    error = models.TextField(blank=True)
    budget_tokens = models.PositiveIntegerField(default=0, help_text="The input budget it was made for.")
    span_tokens = models.PositiveIntegerField(default=0)
    covered_tokens = models.PositiveIntegerField(
        default=0, help_text="Its span's and those of the summaries it builds on; 0 where the user cleared."
    )
    tokens_before = models.PositiveIntegerField(default=0)
    tokens_after = models.PositiveIntegerField(default=0)
    usage = models.JSONField(default=dict)
    holder = models.CharField(max_length=100, blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    rewrite_since = models.DateTimeField(
        null=True,
        help_text="When something it covers was forgotten; it is an extract until a worker rewrites it.",
    )
    rewrite_after = models.DateTimeField(
        null=True, help_text="A rewrite failed and is not retried before this time."
    )
    context_kept_at = models.DateTimeField(
        null=True, help_text="When the messages it covers were stored in context.jsonl."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status__in=["pending", "running"]),
                name="one_active_compaction",
            ),
            models.UniqueConstraint(
                fields=["branch", "first_position", "last_position"],
                condition=Q(status="done"),
                name="one_summary_per_span",
            ),
            models.CheckConstraint(
                condition=Q(first_position__lte=F("last_position")), name="compaction_span_not_empty"
            ),
        ]
        indexes = [
            # The latest finished checkpoint of a branch.
            models.Index(
                fields=["branch", "-last_position"], condition=Q(status="done"), name="compaction_latest"
            ),
            # The sweep: compactions that are active for too long.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(status__in=["pending", "running"]),
                name="compaction_active",
            ),
            # The sweep: summaries to rewrite.
            models.Index(
                fields=["rewrite_since"],
                condition=Q(rewrite_since__isnull=False),
                name="compaction_to_rewrite",
            ),
            # The sweep: compactions whose messages are not in the context file yet.
            models.Index(
                fields=["finished_at"],
                condition=Q(status="done", context_kept_at=None),
                name="compaction_not_kept",
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @staticmethod
    def lease() -> timedelta:
        """Return the length of a lease. It is short, so that the work of a dead worker soon resumes; calls renew it."""
        return timedelta(seconds=settings.LEASE_S)

    @classmethod
    def is_abandoned(cls, now: datetime) -> Q:
        """Return the condition for running compactions whose lease has run out."""
        return Q(is_out_of_lease(now, cls.lease()), status=cls.Status.RUNNING)
