"""Tables that every package may use."""

from __future__ import annotations

from django.db import models


class Fence(models.Model):
    """A counter that is raised whenever something of a user, or of a shared memory, is forgotten (see `fences`)."""

    key = models.UUIDField(
        primary_key=True, help_text="The id of a user, or of the agent that shares a memory."
    )
    count = models.PositiveIntegerField(default=0)
