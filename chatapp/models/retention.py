"""How long the conversations of a group are kept."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import models


class GroupRetention(models.Model):
    """Stands above RETENTION_DAYS for the members of its group; of several groups the longest period counts."""

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="retention")
    days = models.PositiveIntegerField(
        help_text="Conversations nobody wrote to for so many days are cleaned up; 0 = never."
    )

    class Meta:
        verbose_name = "clean-up period"

    def __str__(self) -> str:
        return f"{self.days} days" if self.days else "for ever"
