"""Writes imports of uploaded files: whose work one is, and how far it is."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from chatapp.accounts.idempotency_keys import record_made
from chatapp.accounts.models import User
from chatapp.features.importing.models import Import
from chatapp.operations.errors import Conflict
from chatapp.operations.jobs import wake_worker

MAX_UNFINISHED = 3
LEASE = timedelta(seconds=90)
KEEP = timedelta(days=90)
"""Reports are kept so long."""


def create_import(*, user: User, import_id: UUID, file_name: str, size_bytes: int, now: datetime) -> Import:
    """Store an import whose file lies there already, and wake a worker. Raises Conflict for one too many."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        unfinished = Import.objects.filter(user=user, state__in=[Import.State.WAITING, Import.State.RUNNING])
        if unfinished.count() >= MAX_UNFINISHED:
            raise Conflict(
                f"{MAX_UNFINISHED} imports of yours are not done yet; wait for one of them.",
                code="too_many",
            )
        row = Import.objects.create(
            id=import_id,
            user=user,
            file_name=file_name,
            size_bytes=size_bytes,
            lease_expires_at=now,
            created_at=now,
        )
        record_made(row.pk)
        wake_worker("chatapp.features.importing.tasks.import_some", str(row.pk))
    return row


def claim_import(*, import_id: UUID, now: datetime) -> Import | None:
    """None where it is done, or another worker is at it."""
    free = Import.objects.filter(
        pk=import_id, state__in=[Import.State.WAITING, Import.State.RUNNING], lease_expires_at__lte=now
    )
    claimed = free.update(state=Import.State.RUNNING, lease_expires_at=now + LEASE, fence=F("fence") + 1)
    return Import.objects.select_related("user").filter(pk=import_id).first() if claimed else None


def note_progress(*, row: Import, report: dict[str, Any], now: datetime) -> bool:
    """Store how far it is, and hold it on; False where another worker has it, or its user is gone."""
    held = Import.objects.filter(pk=row.pk, fence=row.fence, state=Import.State.RUNNING)
    return bool(
        held.update(
            report=report,
            read_bytes=row.read_bytes,
            total_bytes=row.total_bytes,
            lease_expires_at=now + LEASE,
        )
    )


def pause_import(*, row: Import, now: datetime) -> None:
    """Leave the rest to whichever worker comes next."""
    with transaction.atomic():
        if Import.objects.filter(pk=row.pk, fence=row.fence).update(lease_expires_at=now):
            wake_worker("chatapp.features.importing.tasks.import_some", str(row.pk))


def end_import(*, row: Import, error: str, now: datetime) -> None:
    state = Import.State.FAILED if error else Import.State.DONE
    held = Import.objects.filter(pk=row.pk, fence=row.fence, state=Import.State.RUNNING)
    held.update(state=state, error=error[:300], finished_at=now)


def delete_old_imports(*, now: datetime) -> None:
    Import.objects.filter(finished_at__lt=now - KEEP).delete()
