"""Presets: how an agent speaks, with which model and tools, how its context is kept, what its hooks do."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models

from chatapp.models.identity import new_id
from chatapp.models.mcp_servers import McpServer
from chatapp.models.model_configs import ModelConfig


class Agent(models.Model):
    """`hooks` are declarations as `agents.hooks` reads them; `context_policy` overrides the model's, field by field.

    Without an `owner` an operator made it, for everybody; with one it is that user's own.
    """

    class Mode(models.TextChoices):
        REACT = "react", "one loop of thinking and tools"
        PLAN = "plan", "a plan of steps, carried out in parallel"
        AUTO = "auto", "a plan for questions of several parts, else one loop"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="agents",
        help_text="The user who made it for himself. Empty: for everybody.",
    )
    name = models.CharField(max_length=100, help_text="What users choose.")
    model = models.ForeignKey(
        ModelConfig,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="agents",
        help_text="Answers where the conversation names none. Empty: the default model.",
    )
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.REACT)
    system_prompt = models.TextField(blank=True, help_text="Empty: the model's, or the built-in one.")
    greeting = models.TextField(blank=True, help_text="Shown above an empty conversation.")
    temperature = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.0)])
    timeout_s = models.FloatField(
        "time limit",
        default=0.0,
        validators=[MinValueValidator(0.0)],
        help_text="Seconds one answer may take; 0 = no limit of its own.",
    )
    tools = models.JSONField(
        null=True, blank=True, help_text="Names of what its answers may use. None: the deployment's choice."
    )
    mcp_servers = models.ManyToManyField(
        McpServer, blank=True, related_name="agents", verbose_name="MCP servers"
    )
    uses_memory = models.BooleanField(
        default=True, help_text="Whether its answers recall what was said elsewhere, and are remembered."
    )
    shares_memory = models.BooleanField(
        default=False,
        help_text="Whether what its conversations remember is known to everybody who talks to it. Such conversations"
        " know nothing private of their users. For agents for everybody only.",
    )
    context_policy = models.JSONField(default=dict, blank=True)
    hooks = models.JSONField(default=list, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(owner=None), name="agent_name_once_for_all"
            ),
            models.UniqueConstraint(fields=["owner", "name"], name="agent_name_once_per_owner"),
            models.CheckConstraint(
                condition=models.Q(shares_memory=False) | models.Q(owner=None), name="agent_shares_for_all"
            ),
        ]

    def __str__(self) -> str:
        return self.name
