"""Runs, the text they have written so far, their model calls and their tool calls."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.operations.database.ids import new_id
from chatapp.operations.workers.leases import is_out_of_lease


class Run(models.Model):
    """One agent execution answering one message. It belongs to the holder of its lease. Each claim raises `fence`, and
    a write with an older fence changes nothing."""

    class Status(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        COMPLETE = "complete"
        STOPPED = "stopped"
        FAILED = "failed"
        INTERRUPTED = "interrupted"

    ACTIVE = (Status.QUEUED, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    conversation = models.ForeignKey("chatapp.Conversation", on_delete=models.CASCADE, related_name="runs")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    question = models.ForeignKey(
        "chatapp.Message", null=True, on_delete=models.CASCADE, related_name="runs_asked"
    )
    answer = models.OneToOneField("chatapp.Message", on_delete=models.CASCADE, related_name="run")
    continues = models.ForeignKey("chatapp.Message", null=True, on_delete=models.SET_NULL, related_name="+")
    model = models.ForeignKey("chatapp.ModelConfig", null=True, on_delete=models.SET_NULL, related_name="+")
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
            # For ending dead runs and adopting queued ones.
            models.Index(
                fields=["status", "lease_expires_at"],
                condition=Q(status__in=["queued", "running"]),
                name="run_active",
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)

    @staticmethod
    def is_out_of_lease(now: datetime) -> Q:
        """Return a filter for runs with a lease that no living process holds."""
        return is_out_of_lease(now, timedelta(seconds=settings.LEASE_S))

    @classmethod
    def active(cls) -> models.QuerySet[Run]:
        """Return the runs that have not ended. Uses the literal condition of the index `one_active_run`: with query
        parameters, SQLite does not use the index and reads all runs of a conversation."""
        return cls.objects.extra(where=["chatapp_run.status IN ('queued', 'running')"])


class RunSource(models.Model):
    """A message, an entry or a file that a run has read: recalled for its question, or returned by a tool that reads
    stored data. Forgetting follows these rows to the copies, and later requests show the recalled texts again from
    them."""

    RETURNED = -1

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="sources")
    # No foreign key, because it may name a message, an entry or a file.
    source_id = models.UUIDField(db_index=True)
    place = models.IntegerField(
        default=RETURNED, help_text="Its place in what was recalled; -1: a tool returned it."
    )
    start = models.PositiveIntegerField(default=0, help_text="The span of its text that was recalled.")
    end = models.PositiveIntegerField(default=0)
    until = models.DateTimeField(
        null=True,
        help_text="Not recalled itself: what it says took the place of what is recalled there, then.",
    )
    starts_anew = models.BooleanField(
        default=False, help_text="What was recalled before it made room and is no longer sent."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "source_id", "place", "start"], name="run_source_once"),
        ]


class AnswerPiece(models.Model):
    """The text that a checkpoint adds to an answer being written. At the run's end, its message gets the whole text and
    the pieces are deleted. Rewriting the message for each piece would cost the square of its length."""

    class Kind(models.TextChoices):
        TEXT = "text"
        REASONING = "reasoning"

    message = models.ForeignKey("chatapp.Message", on_delete=models.CASCADE, related_name="pieces")
    kind = models.CharField(max_length=9, choices=Kind)
    offset = models.PositiveIntegerField(help_text="In characters, from the beginning of its kind.")
    text = models.TextField()

    class Meta:
        constraints = [
            # For a repeated checkpoint, and for reading the pieces in order.
            models.UniqueConstraint(fields=["message", "kind", "offset"], name="answer_piece_once"),
        ]


class RunStep(models.Model):
    """One model call of a run, for its trace. Its cost is in `Usage`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    n = models.PositiveIntegerField(help_text="Its number in its run, from 1.")
    purpose = models.CharField(max_length=12)
    model_name = models.CharField(max_length=200)
    request_n = models.PositiveIntegerField(
        default=0, help_text="The number of its request; 0 = none is kept."
    )
    started_at = models.DateTimeField()
    first_token_ms = models.PositiveIntegerField(null=True)
    duration_ms = models.PositiveIntegerField()
    input_tokens = models.PositiveIntegerField()
    output_tokens = models.PositiveIntegerField()
    cached_tokens = models.PositiveIntegerField(default=0)
    exact = models.BooleanField()
    plan_step = models.CharField(
        max_length=50, blank=True, help_text="In plan mode: the id of a step, `planner` or `analyst`."
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "n"], name="step_number_once")]


class ToolCall(models.Model):
    """One tool call, recorded before it runs. We choose `call_id`. `result` is what the model sees of the result,
    stored before the model sees it."""

    class State(models.TextChoices):
        REQUESTED = "requested"
        WAITING = "waiting"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        DENIED = "denied"
        INTERRUPTED = "interrupted"

    OPEN = (State.REQUESTED, State.WAITING, State.RUNNING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tool_calls")
    message = models.ForeignKey(
        "chatapp.Message",
        null=True,
        on_delete=models.CASCADE,
        related_name="tool_calls",
        help_text="In which it was asked for.",
    )
    step = models.PositiveIntegerField(help_text="The number of the model call that asked for it.")
    ordinal = models.PositiveIntegerField(help_text="Its place in its run.")
    call_id = models.CharField(max_length=40)
    name = models.CharField(max_length=64)
    arguments = models.TextField(blank=True)
    state = models.CharField(max_length=12, choices=State)
    is_idempotent = models.BooleanField()
    has_begun = models.BooleanField(default=False, help_text="Whether it may have happened.")
    decision = models.CharField(
        max_length=10, blank=True, help_text="What the user said to a call that waited."
    )
    result = models.JSONField(default=list, help_text="The parts of its message; empty while there are none.")
    is_cut = models.BooleanField(default=False)
    is_told = models.BooleanField(default=False, help_text="Whether its result is a message already.")
    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    plan_step = models.CharField(
        max_length=50, blank=True, help_text="In plan mode: the step that asked for it."
    )
    hook_id = models.CharField(
        max_length=100, blank=True, help_text="The hook that called it, where no model did."
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "call_id"], name="tool_call_id_once"),
            models.UniqueConstraint(fields=["run", "ordinal"], name="tool_call_order"),
        ]
        indexes = [
            # For finding abandoned calls.
            models.Index(
                fields=["requested_at"],
                condition=models.Q(state__in=["requested", "waiting", "running"]),
                name="tool_call_open",
            ),
            # For the calls of a conversation that wait for its user's decision.
            models.Index(
                fields=["run"],
                condition=models.Q(state="waiting", decision=""),
                name="tool_call_undecided",
            ),
        ]

    @classmethod
    def undecided(cls) -> models.QuerySet[ToolCall]:
        """Return the calls that wait for their user's decision."""
        return cls.objects.filter(state=cls.State.WAITING, decision="")

    @property
    def result_text(self) -> str:
        return "".join(part.get("text", "") for part in self.result[:1])
