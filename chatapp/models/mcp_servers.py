"""MCP servers that operators attach, and the tools each of them listed last."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from chatapp.models.identity import new_id
from chatapp.models.model_configs import endpoint_address


class McpServer(models.Model):
    """`tools` is what it listed at `listed_at`: runs read that and never wait for the server."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(
        max_length=30,
        unique=True,
        validators=[
            RegexValidator(
                r"^[a-z0-9]+(?:[-_][a-z0-9]+)*\Z", "Use small letters and digits, with single - or _ between."
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
        help_text="It may have a private or loopback address. Without this only public addresses are asked.",
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
    listed_at = models.DateTimeField(null=True, editable=False)
    asked_at = models.DateTimeField(null=True, editable=False)
    problem = models.TextField(blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "MCP server"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
