"""MCP servers, deployment hooks and agents."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy

from chatapp.operations.database.ids import new_id
from chatapp.providers.models import endpoint_address


class McpServer(models.Model):
    """An MCP server. `tools` is its list at `listed_at`, and `approved_tools` the list that an operator approved.

    Runs are offered the tools that are listed as approved, and never wait for the server.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(
        max_length=30,
        unique=True,
        validators=[
            RegexValidator(
                # `$` would accept a newline after the name.
                r"^[a-z0-9]+(?:[-_][a-z0-9]+)*\Z",
                gettext_lazy("Use small letters and digits, with single - or _ between."),
            )
        ],
        help_text="Begins the names of its tools: name__tool.",
    )
    url = models.CharField(
        "address",
        max_length=500,
        validators=[endpoint_address],
        help_text="Of its streamable HTTP endpoint, such as https://tools.example.com/mcp.",
    )
    headers_encrypted = models.TextField(blank=True, editable=False)
    is_own = models.BooleanField(
        "on our own network",
        default=False,
        help_text="Allows a private or loopback address. Otherwise only public addresses are called.",
    )
    enabled = models.BooleanField(default=True)
    for_everyone = models.BooleanField(
        default=False, help_text="Also where a conversation has no agent, and for the agents that users make."
    )
    tool_filter = models.JSONField(
        "only these tools", default=list, blank=True, help_text="The server's own names. Empty: all."
    )
    needs_consent = models.BooleanField(default=True, help_text="The user is asked to approve each call.")
    timeout_s = models.FloatField(
        "time limit",
        default=30.0,
        validators=[MinValueValidator(1.0), MaxValueValidator(600.0)],
        help_text="Seconds one call may take.",
    )
    tools = models.JSONField(default=list, editable=False)
    approved_tools = models.JSONField(default=list, editable=False)
    listed_at = models.DateTimeField(null=True, editable=False)
    asked_at = models.DateTimeField(null=True, editable=False)
    problem = models.TextField(blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "MCP server"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class DeploymentHook(models.Model):
    """A hook of every conversation. `declaration` has the format of `agents.loop.hooks`; `hook_id` is its id."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    hook_id = models.CharField(max_length=100, unique=True)
    declaration = models.JSONField(help_text="One hook, as in the YAML of agents.")
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at", "id"]
        verbose_name = "hook"

    def __str__(self) -> str:
        return self.hook_id


class Agent(models.Model):
    """`hooks` have the format of `agents.loop.hooks`; `context_policy` overrides the model's, field by field.

    Without an `owner`, an operator made the agent for everybody; otherwise it is that user's own.
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
        help_text="The user who created it for personal use. Empty: for everybody.",
    )
    name = models.CharField(max_length=100, help_text="What users choose.")
    model = models.ForeignKey(
        "chatapp.ModelConfig",
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
        help_text="Whether memories of its conversations are shared with all its users. Such conversations know nothing"
        " private about their users. Only for agents that everybody may use.",
    )
    context_policy = models.JSONField(default=dict, blank=True)
    hooks = models.JSONField(default=list, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            # NULLs are distinct, so the next constraint does not apply to agents without an owner.
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
