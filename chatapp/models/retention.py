"""How long the conversations of a group are kept."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.core.validators import MaxValueValidator
from django.db import models

from memory.bounds import MAX_RETENTION_DAYS


class GroupRetention(models.Model):
    """Stands above RETENTION_DAYS for the members of its group; of several groups the longest period counts."""

    group = models.OneToOneField(Group, on_delete=models.CASCADE, related_name="retention")
    days = models.PositiveIntegerField(
        validators=[MaxValueValidator(MAX_RETENTION_DAYS)],
        help_text="Conversations nobody wrote to for so many days are cleaned up; 0 = never.",
    )

    class Meta:
        verbose_name = "clean-up period"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(days__gte=0, days__lte=MAX_RETENTION_DAYS),
                name="groupretention_days_in_range",
            )
        ]

    def __str__(self) -> str:
        return f"{self.days} days" if self.days else "for ever"
