"""Note what a run read of elsewhere: forgetting follows it to whatever the run copied."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import transaction

from chatapp.runs.models import Run, RunSource


def note_read(run_id: UUID | str, source_ids: Collection[UUID]) -> None:
    """Called before the run gets what was read. Nothing is noted of a run that is gone."""
    if not source_ids or not run_id:
        return
    with transaction.atomic():
        if Run.objects.filter(pk=run_id).exists():
            rows = [RunSource(run_id=UUID(str(run_id)), source_id=one) for one in sorted(set(source_ids))]
            RunSource.objects.bulk_create(rows, ignore_conflicts=True)
