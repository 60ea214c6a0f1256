"""Receives import files in parts, so that an upload can continue after its connection broke.

The row stores how much has arrived. Later bytes may be left from an interrupted part, and are overwritten.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from django.conf import settings

from chatapp.accounts.models import User
from chatapp.features.importing import job
from chatapp.features.importing.job_actions import WRONG_PART, begin_upload, discard_import, note_part
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import accessible_import
from chatapp.features.importing.values import title_of
from chatapp.operations import clock
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.operations.storage.durable_files import sync_folder

MAX_PART_BYTES = 4 * 2**20
SPARE_DISK_BYTES = 256 * 2**20
"""Disk space that must stay free in addition to the announced size of an upload."""


def part_bytes() -> int:
    """Return how many bytes a part may have."""
    return min(MAX_PART_BYTES, int(settings.MAX_REQUEST_BYTES))


def begin(*, user: User, name: str, size_bytes: int, fingerprint: str) -> Import:
    """Return the upload of this file to continue, or a new one. Raise Conflict, TooLarge or DiskFull."""
    job.folder().mkdir(parents=True, exist_ok=True)
    return begin_upload(
        user=user,
        file_name=title_of(name) or "export",
        size_bytes=size_bytes,
        fingerprint=fingerprint,
        most_bytes=settings.MAX_STORED_BYTES,
        free_bytes=shutil.disk_usage(job.folder()).free - SPARE_DISK_BYTES,
        now=clock.now(),
    )


def receive_part(*, user: User, import_id: str | UUID, offset: int, read: Callable[[], bytes]) -> Import:
    """Store the bytes of a file from `offset` on, then update its row. Raise Conflict if the part is not the next one,
    InvalidInput if its size is wrong."""
    row = accessible_import(user, import_id)
    if row.state != Import.State.UPLOADING or row.received_bytes != offset:
        raise Conflict(WRONG_PART, code="wrong_part")
    # Read it only after these checks, so that an invalid part costs no memory.
    part = read()
    if not 0 < len(part) <= min(part_bytes(), row.size_bytes - offset):
        raise InvalidInput(f"A part has at most {part_bytes():,} bytes, and ends where the file does.")
    _write(job.folder() / str(row.pk), offset, part)
    note_part(row=row, offset=offset, size_bytes=len(part), now=clock.now())
    row.refresh_from_db()
    return row


def _write(path: Path, offset: int, part: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    # Use `os.open`, because `open` with "wb" would truncate earlier parts.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.seek(offset)
        file.write(part)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync_folder(path.parent)


def discard(*, user: User, import_id: str | UUID) -> None:
    """Delete an import that is uploading or has ended, and its file. Raise Conflict if it is waiting or running."""
    row = accessible_import(user, import_id)
    # Delete the row first: the sweep deletes a file without a row.
    discard_import(row=row)
    (job.folder() / str(row.pk)).unlink(missing_ok=True)
