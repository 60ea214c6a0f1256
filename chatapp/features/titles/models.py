"""The table of titles to write."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from chatapp.operations.workers.leases import is_out_of_lease


class TitleJob(models.Model):
    """The job that names a conversation. The row stays when it is done, so that there is no second job."""

    LEASE = timedelta(minutes=3)
    """Longer than the model call may take."""
    MAX_ATTEMPTS = 2
    """The second attempt is for a job whose worker died."""

    conversation = models.OneToOneField(
        "chatapp.Conversation", primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    lease_expires_at = models.DateTimeField(
        null=True, help_text="From then on a worker may take it. Null: it is over."
    )
    attempts = models.PositiveSmallIntegerField(default=0)

    class Meta:
        indexes = [
            # The sweep: jobs that no worker has.
            models.Index(
                fields=["lease_expires_at"],
                condition=Q(lease_expires_at__isnull=False),
                name="title_job_waiting",
            )
        ]

    @classmethod
    def free(cls, now: datetime) -> models.QuerySet[TitleJob]:
        """Return the unfinished jobs that no worker has and that have attempts left."""
        return cls.objects.filter(is_out_of_lease(now, cls.LEASE), attempts__lt=cls.MAX_ATTEMPTS)
