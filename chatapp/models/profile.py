"""The profile: a user's short standing memory, its versions, and the nightly work that keeps it up to date."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.models.identity import new_id
from chatapp.models.model_configs import ModelConfig


class Profile(models.Model):
    """What is in context now. The row is the truth; `MEMORY.md` shows the version `written_version`."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="profile"
    )
    text = models.TextField(blank=True)
    version = models.PositiveIntegerField(default=0)
    written_version = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [
            # The sweep of files that are behind.
            models.Index(
                fields=["version"],
                condition=~Q(version=models.F("written_version")),
                name="profile_unwritten",
            )
        ]


class ProfileVersion(models.Model):
    """What the profile said from `created_at` on, and by whose hand. Numbered from 1 per user."""

    class Author(models.TextChoices):
        USER = "user"
        CONSOLIDATION = "consolidation"
        FORGETTING = "forgetting"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    profile = models.ForeignKey(Profile, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    text = models.TextField(blank=True)
    author = models.CharField(max_length=13, choices=Author)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["profile", "number"], name="profile_version_once")]


class Consolidation(models.Model):
    """One pass over what a user's entries say that the profile does not know yet. A row before it is work.

    `night` is the user's day that begins with it; None where the user asked for it.
    """

    class Status(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        SKIPPED = "skipped", "no language model is configured"

    ACTIVE = (Status.PENDING, Status.RUNNING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    night = models.DateField(null=True)
    status = models.CharField(max_length=10, choices=Status, default=Status.PENDING)
    model = models.ForeignKey(ModelConfig, null=True, on_delete=models.SET_NULL, related_name="+")
    entry_count = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(null=True, help_text="The version it made; None = nothing new.")
    error = models.TextField(blank=True)
    fence = models.PositiveIntegerField(default=0)
    lease_expires_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(status__in=["pending", "running"]),
                name="one_active_consolidation",
            ),
            models.UniqueConstraint(
                fields=["user", "night"], condition=Q(night__isnull=False), name="one_consolidation_a_night"
            ),
        ]
        indexes = [
            # The sweep of what is pending too long.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(status__in=["pending", "running"]),
                name="consolidation_active",
            ),
        ]
