"""Writes imports of uploaded files: their uploads, leases and progress."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from chatapp.accounts.idempotency_keys import record_created_id
from chatapp.accounts.models import User
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import file_bytes_of
from chatapp.files.selectors import stored_bytes
from chatapp.operations.errors import Conflict, DiskFull, NotFound, TooLarge
from chatapp.operations.workers.jobs import wake_worker

MAX_UNFINISHED = 3
WRONG_PART = "This is not the next part of the file. Check `received_bytes` of the import."
MAX_TURNS_WITHOUT_PROGRESS = 5
"""Turns in a row that ended, e.g. by a crash, before they had stored anything new."""
FORGOTTEN = "forgotten"
"""Key in a report: the keys of sources to skip, because their user has forgotten them meanwhile."""
ADVANCED = "advanced"
"""Key in a report: the fence of the last turn that stored something new."""
KEEP = timedelta(days=90)
"""How long reports are kept."""
KEEP_FILE = timedelta(days=2)
"""How long an incomplete upload, or a file whose import failed by an internal error, is kept for its user."""


def create_import(
    *, user: User, import_id: UUID, file_name: str, size_bytes: int, most_bytes: int, now: datetime
) -> Import:
    """Store an import whose file exists already, and wake a worker. Raise Conflict for too many imports, and TooLarge
    as `begin_upload` does."""
    with transaction.atomic():
        unfinished = _lock_imports(user, Import.State.WAITING, Import.State.RUNNING)
        row = _add_import(
            unfinished,
            f"You already have {MAX_UNFINISHED} unfinished imports. Wait until one is done.",
            id=import_id,
            user=user,
            file_name=file_name,
            size_bytes=size_bytes,
            received_bytes=size_bytes,
            lease_expires_at=now,
            created_at=now,
        )
        _check_room(user, most_bytes)
        _wake(row.pk)
    return row


def begin_upload(
    *,
    user: User,
    file_name: str,
    size_bytes: int,
    fingerprint: str,
    most_bytes: int,
    free_bytes: int,
    now: datetime,
) -> Import:
    """Return the user's unfinished upload of the same file, or a new one.

    Raise Conflict for too many uploads, TooLarge if the user's files would exceed `most_bytes` (0: no limit), DiskFull
    if the rest of the file does not fit on the disk.
    """
    with transaction.atomic():
        unfinished = _lock_imports(user, Import.State.UPLOADING)
        same = unfinished.filter(file_name=file_name, size_bytes=size_bytes, fingerprint=fingerprint)
        row = same.first() or _add_import(
            unfinished,
            f"You already have {MAX_UNFINISHED} incomplete uploads. Continue one of them, or discard it.",
            user=user,
            file_name=file_name,
            size_bytes=size_bytes,
            fingerprint=fingerprint,
            state=Import.State.UPLOADING,
            kept_until=now + KEEP_FILE,
            lease_expires_at=now,
            created_at=now,
        )
        _check_room(user, most_bytes)
        if row.size_bytes - row.received_bytes > free_bytes:
            raise DiskFull
        return row


def _check_room(user: User, most_bytes: int) -> None:
    """Raise TooLarge. The new row must be stored already, so that it counts; the rollback removes it again."""
    if most_bytes and stored_bytes(user.pk) + file_bytes_of(user) > most_bytes:
        sentence = f"Your files would become larger than {most_bytes / 2**20:,.0f} MB. Delete some first."
        raise TooLarge(sentence, code="storage_full")


def _lock_imports(user: User, *states: Import.State) -> QuerySet[Import]:
    """Return the user's imports in these states. The lock on the user prevents concurrent requests from adding more."""
    User.objects.select_for_update().get(pk=user.pk)
    return Import.objects.filter(user=user, state__in=states)


def _add_import(unfinished: QuerySet[Import], too_many: str, **columns: Any) -> Import:
    """Store an import unless too many are unfinished. Raise Conflict with the message `too_many`."""
    if unfinished.count() >= MAX_UNFINISHED:
        raise Conflict(too_many, code="too_many")
    row = Import.objects.create(**columns)
    record_created_id(row.pk)
    return row


def note_part(*, row: Import, offset: int, size_bytes: int, now: datetime) -> None:
    """Store that the bytes from `offset` on have arrived; the last ones start the import. Raise Conflict if other bytes
    are expected now, NotFound if the upload was discarded."""
    received = offset + size_bytes
    is_whole = received == row.size_bytes
    waiting = {"state": Import.State.WAITING, "kept_until": None, "lease_expires_at": now}
    with transaction.atomic():
        expected = Import.objects.filter(pk=row.pk, state=Import.State.UPLOADING, received_bytes=offset)
        columns = waiting if is_whole else {"kept_until": now + KEEP_FILE}
        # Only one of two requests with the same part updates the row.
        if expected.update(received_bytes=received, **columns):
            if is_whole:
                _wake(row.pk)
            return
    if not Import.objects.filter(pk=row.pk).exists():
        raise NotFound
    raise Conflict(WRONG_PART, code="wrong_part")


def try_import_again(*, row: Import, now: datetime) -> None:
    """Let a worker continue a failed import whose file was kept. Raise Conflict for any other import."""
    with transaction.atomic():
        rows = Import.objects.select_for_update()
        kept = rows.filter(pk=row.pk, state=Import.State.FAILED, kept_until__gt=now).first()
        if kept is None:
            raise Conflict("The file of this import no longer exists. Upload it again.", code="file_gone")
        columns = {"error": "", "kept_until": None, "finished_at": None, "lease_expires_at": now}
        report = kept.report | {ADVANCED: kept.fence}
        Import.objects.filter(pk=row.pk).update(state=Import.State.WAITING, report=report, **columns)
        _wake(row.pk)


def discard_import(*, row: Import) -> None:
    """Delete an import that is uploading or has ended. Raise Conflict if it is waiting or running."""
    going_on = [Import.State.WAITING, Import.State.RUNNING]
    if not Import.objects.filter(pk=row.pk).exclude(state__in=going_on).delete()[0]:
        raise Conflict("This import is in progress and cannot be discarded.", code="import_going_on")


def delete_imports(user: User) -> list[UUID]:
    """Delete all imports of the user, in the caller's transaction, and return their ids. A worker that is running one
    finds its row gone."""
    rows = Import.objects.filter(user=user)
    ids = list(rows.values_list("pk", flat=True))
    rows.delete()
    return ids


def pass_over(user: User, source_keys: Iterable[str]) -> None:
    """Make imports that may continue skip these sources, in the caller's transaction, which forgets them."""
    may_go_on = Import.objects.filter(user=user).exclude(state=Import.State.DONE)
    for row in may_go_on.select_for_update().order_by("pk"):
        row.report[FORGOTTEN] = sorted({*row.report.get(FORGOTTEN, ()), *source_keys})
        row.save(update_fields=["report"])


def claim_import(*, import_id: UUID, now: datetime) -> Import | None:
    """Claim an import and return its row; None if it is done or another worker has it."""
    free, until = Import.free(now).filter(pk=import_id), now + Import.LEASE
    claimed = free.update(state=Import.State.RUNNING, lease_expires_at=until, fence=F("fence") + 1)
    return Import.objects.select_related("user").filter(pk=import_id).first() if claimed else None


def is_stuck(row: Import) -> bool:
    """Return whether too many turns have stored nothing new, not counting the present one."""
    return row.fence - int(row.report.get(ADVANCED, 0)) > MAX_TURNS_WITHOUT_PROGRESS


def note_progress(*, row: Import, report: dict[str, Any], now: datetime) -> bool:
    """Store the progress of an import and renew its lease. Return False if another worker has it or its row is gone."""
    held = Import.objects.filter(pk=row.pk, fence=row.fence, state=Import.State.RUNNING)
    with transaction.atomic():
        if (stored := held.select_for_update().first()) is None:
            return False
        # Keep these from the row: `pass_over` may have changed it.
        kept = {name: stored.report[name] for name in (FORGOTTEN, ADVANCED) if name in stored.report}
        if report["conversations"] > stored.report.get("conversations", 0):
            kept[ADVANCED] = row.fence
        held.update(
            report=report | kept,
            read_bytes=row.read_bytes,
            total_bytes=row.total_bytes,
            lease_expires_at=now + Import.LEASE,
        )
    return True


def pause_import(*, row: Import, now: datetime) -> None:
    """Leave the rest of an import to the next worker."""
    with transaction.atomic():
        if Import.objects.filter(pk=row.pk, fence=row.fence).update(lease_expires_at=now):
            _wake(row.pk)


def end_import(*, row: Import, error: str, now: datetime, keeps_file: bool = False) -> None:
    state = Import.State.FAILED if error else Import.State.DONE
    kept_until = now + KEEP_FILE if keeps_file else None
    held = Import.objects.filter(pk=row.pk, fence=row.fence, state=Import.State.RUNNING)
    held.update(state=state, error=error[:300], finished_at=now, kept_until=kept_until)


def delete_old_imports(*, now: datetime) -> None:
    Import.objects.filter(finished_at__lt=now - KEEP).delete()


def give_up_abandoned(*, now: datetime) -> None:
    """Release the files of abandoned uploads and failed imports; the sweep deletes them."""
    abandoned = Import.objects.filter(kept_until__lte=now)
    abandoned.filter(state=Import.State.UPLOADING).delete()
    # The report of a failed import stays.
    abandoned.exclude(state=Import.State.UPLOADING).update(kept_until=None)


def _wake(import_id: UUID) -> None:
    wake_worker("chatapp.features.importing.tasks.import_some", str(import_id))
