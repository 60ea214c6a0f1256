"""The steps of runs: one row for each model call, one for each tool call."""

from __future__ import annotations

from django.db import models

from chatapp.models.conversations import Message
from chatapp.models.identity import new_id
from chatapp.models.runs import Run


class RunStep(models.Model):
    """One model call of a run, for its trace; what it cost is in `Usage`."""

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
    """One call of a tool, recorded before it runs. `call_id` is ours; what the model sees of the result is `result`,
    written before the model sees it."""

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
        Message,
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
            # Calls that nobody finished.
            models.Index(
                fields=["requested_at"],
                condition=models.Q(state__in=["requested", "waiting", "running"]),
                name="tool_call_open",
            ),
        ]
