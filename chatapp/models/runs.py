"""Runs, the event log and the usage ledger."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.models.conversations import Conversation, Message
from chatapp.models.identity import new_id
from chatapp.models.model_configs import ModelConfig


class Run(models.Model):
    """One agent execution answering one message. Belongs to the holder of its lease; `fence` grows with
    every claim, and a write that names an older one changes nothing."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETE = "complete"
        STOPPED = "stopped"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    ACTIVE = (Status.QUEUED, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    question = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="runs_asked")
    answer = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="run")
    continues = models.ForeignKey(Message, null=True, on_delete=models.SET_NULL, related_name="+")
    model = models.ForeignKey(ModelConfig, null=True, on_delete=models.SET_NULL, related_name="+")
    mode = models.CharField(
        max_length=10, blank=True, help_text="What the sender wanted; once claimed, how it is answered."
    )
    plan = models.JSONField(null=True, help_text="The steps of a plan as they stand, with their results.")
    status = models.CharField(max_length=12, choices=Status, default=Status.QUEUED)
    holder = models.CharField(max_length=100, blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    is_last_term = models.BooleanField(
        default=False, help_text="The lease ran out once; its holder has one heartbeat to renew it."
    )
    stop_requested = models.BooleanField(default=False)
    error_category = models.CharField(max_length=20, blank=True)
    error_message = models.TextField(blank=True)
    error_detail = models.TextField(blank=True)
    usage = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(status__in=["queued", "running"]), name="one_active_run"
            ),
        ]
        indexes = [
            # The reaper and the adoption of queued runs.
            models.Index(
                fields=["status", "lease_expires_at"],
                condition=Q(status__in=["queued", "running"]),
                name="run_active",
            ),
        ]


class AnswerPiece(models.Model):
    """What a checkpoint adds to an answer that is being written. With the run's end its message has all of it, and
    the pieces go: a message that is written anew for each of them costs the square of its length."""

    class Kind(models.TextChoices):
        TEXT = "text"
        REASONING = "reasoning"

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="pieces")
    kind = models.CharField(max_length=9, choices=Kind)
    offset = models.PositiveIntegerField(help_text="In characters, from the beginning of its kind.")
    text = models.TextField()

    class Meta:
        constraints = [
            # A checkpoint that is made again, and reading them in order.
            models.UniqueConstraint(fields=["message", "kind", "offset"], name="answer_piece_once"),
        ]


class Event(models.Model):
    """A numbered fact about a conversation; `payload` is the event exactly as it is sent."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=30)
    run = models.ForeignKey(Run, null=True, on_delete=models.CASCADE, related_name="events")
    payload = models.JSONField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="event_seq_once")]


class Usage(models.Model):
    """One row per model call; the price is the one of that moment."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, null=True, on_delete=models.SET_NULL, related_name="+")
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="usage_rows")
    model = models.ForeignKey(ModelConfig, null=True, on_delete=models.SET_NULL, related_name="+")
    model_name = models.CharField(max_length=200)
    purpose = models.CharField(max_length=12)
    input_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    cached_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    kept_out_tokens = models.PositiveIntegerField(
        default=0, help_text="What compaction kept out of the request."
    )
    compaction_saved = models.DecimalField(
        max_digits=14, decimal_places=8, null=True, help_text="What these would have cost at this call's mix."
    )
    cache_saved = models.DecimalField(
        max_digits=14, decimal_places=8, null=True, help_text="What the cached tokens would have cost more."
    )
    exact = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "usage"
        indexes = [
            # What a user spent in a period.
            models.Index(fields=["user", "created_at"], name="usage_by_user"),
            # Background work of a conversation that no answer has shown yet.
            models.Index(fields=["conversation"], condition=Q(run=None), name="usage_not_shown"),
        ]
