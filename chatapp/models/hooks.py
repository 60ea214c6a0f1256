"""Hooks of the whole deployment. Those of an agent and of a conversation stand in their rows."""

from __future__ import annotations

from django.db import models

from chatapp.models.identity import new_id


class DeploymentHook(models.Model):
    """One hook, in force in every conversation. `declaration` is as `agents.hooks` reads it; `hook_id` is its id."""

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
