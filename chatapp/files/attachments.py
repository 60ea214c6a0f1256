"""The bytes of uploads: stored once by their hash, read for model calls, deleted when no row references them."""

from __future__ import annotations

import base64
import fcntl
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from chatapp.accounts.archive import ArchiveFile, safe_file_name
from chatapp.accounts.models import User
from chatapp.files import actions as file_actions
from chatapp.files import selectors as file_selectors
from chatapp.files.documents import read_document
from chatapp.files.images import clean_image
from chatapp.files.models import Attachment
from chatapp.operations.database.schema_version import database_made_at
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import NotFound, TooLarge
from chatapp.operations.storage.durable_files import replace_file

KEEP_UNUSED = timedelta(hours=24)
ARCHIVED_AT_ONCE = 500


def files_folder() -> Path:
    return Path(settings.DATA_DIR) / "files"


def content_path(sha256: str) -> Path:
    return files_folder() / sha256[:2] / sha256


@contextmanager
def _sole_user(sha256: str) -> Iterator[None]:
    """Lock the hash, so that no other process deletes the bytes as unused before their row is stored."""
    folder = files_folder()
    folder.mkdir(parents=True, exist_ok=True)
    # Use sixteen lock files for all hashes: one per hash could not be deleted while others wait for it.
    with open(folder / f".lock-{sha256[:1]}", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _write_content(path: Path, content: bytes) -> None:
    # A file of another size is damaged, so write it again.
    if path.exists() and path.stat().st_size == len(content):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, draft=f"{path.name}.new")  # a name that the sweep finds


def check_size(size_bytes: int) -> None:
    """Raise TooLarge if a file may not have this size."""
    if size_bytes > settings.MAX_UPLOAD_BYTES:
        limit = settings.MAX_UPLOAD_BYTES / 2**20
        raise TooLarge(f"The file is too large; at most {limit:,.0f} MB are accepted.")


def check_room(user: User, size_bytes: int) -> None:
    """Raise TooLarge if the user's files would exceed the limit of one user.

    Concurrent uploads do not see each other, but they are few and of bounded size.
    """
    most = settings.MAX_STORED_BYTES
    if most and file_selectors.stored_bytes(user.pk) + size_bytes > most:
        sentence = f"Your files would become larger than {most / 2**20:,.0f} MB. Delete some first."
        raise TooLarge(sentence, code="storage_full")


def store_upload(*, user: User, name: str, content: bytes) -> Attachment:
    """Store an uploaded image or document, distinguished by content. Raise InvalidInput or TooLarge."""
    check_size(len(content))
    document = read_document(content, name)
    if document is None:
        return store_image(user=user, name=name, content=content, is_asked_for=True)
    return _store(user, name, document.content, document.mime_type, is_asked_for=True)


def store_image(*, user: User, name: str, content: bytes, is_asked_for: bool = False) -> Attachment:
    check_size(len(content))
    image = clean_image(content, settings.MAX_IMAGE_PIXELS)
    return _store(
        user, name, image.content, image.mime_type, image.width, image.height, is_asked_for=is_asked_for
    )


def _store(
    user: User,
    name: str,
    content: bytes,
    mime_type: str,
    width: int = 0,
    height: int = 0,
    *,
    is_asked_for: bool,
) -> Attachment:
    """Store the bytes, then the row that references them. Raise TooLarge.

    Equal bytes in another message share the first row, so that a message that is sent again needs no more room.
    """
    sha256 = hashlib.sha256(content).hexdigest()
    with _sole_user(sha256):
        known = None if is_asked_for else file_selectors.oldest_with_content(user.pk, sha256)
        if known is None:
            check_room(user, len(content))
        _write_content(content_path(sha256), content)
        return known or file_actions.create_attachment(
            user=user,
            name=name,
            sha256=sha256,
            mime_type=mime_type,
            width=width,
            height=height,
            size_bytes=len(content),
            is_asked_for=is_asked_for,
        )


def copy_attachment(original: Attachment, *, user: User, name: str | None = None) -> Attachment:
    """Return a row of the user's own for the same bytes, which are stored once. Raise TooLarge, and NotFound if they
    were deleted meanwhile."""
    check_room(user, original.size_bytes)
    with _sole_user(original.sha256):
        # Check this with the lock, which is also held while the bytes are deleted.
        if not content_path(original.sha256).exists():
            raise NotFound
        return file_actions.create_attachment(
            user=user,
            name=original.name if name is None else name,
            sha256=original.sha256,
            mime_type=original.mime_type,
            width=original.width,
            height=original.height,
            size_bytes=original.size_bytes,
        )


def read_content(attachment: Attachment) -> bytes:
    return content_path(attachment.sha256).read_bytes()


def data_url(attachment: Attachment) -> str:
    """Read the file and return it as a data URL for a model call."""
    return f"data:{attachment.mime_type};base64,{base64.b64encode(read_content(attachment)).decode()}"


def data_urls_of(user_id: UUID, attachment_ids: Iterable[str]) -> dict[str, str]:
    """Return data URLs by id, without ids that do not exist or belong to another user."""
    found = file_selectors.attachments_by_id(user_id, attachment_ids)
    return {
        attachment_id: data_url(row)
        for attachment_id, row in found.items()
        if content_path(row.sha256).exists()
    }


load_data_urls = retry_on_outage(data_urls_of)
"""`await load_data_urls(user_id, attachment_ids)` → data URL by id; in a thread, because images are large."""


def discard_content(hashes: Iterable[str]) -> int:
    """Delete bytes that no row references. Return the number of deleted files."""
    removed = 0
    for sha256 in sorted(set(hashes)):
        with _sole_user(sha256):
            path = content_path(sha256)
            # Check this with the lock, which an upload of the same bytes holds until its row is stored.
            if path.exists() and not file_selectors.is_referenced(sha256):
                path.unlink()
                removed += 1
    return removed


def delete_unused(attachments: Iterable[Attachment]) -> int:
    """Delete those of these uploads that no message or folder references. Return the number of files."""
    chosen = Q(pk__in=[row.pk for row in attachments])
    return discard_content(file_actions.delete_unused_attachments(chosen))


def sweep_files(*, now: datetime) -> int:
    """Delete uploads that no message used within a day, and files without a row. Return the number of files."""
    # Delete bytes after the commit that deletes the rows, which reference them until then.
    discarded = discard_content(file_actions.delete_unused_attachments(Q(created_at__lt=now - KEEP_UNUSED)))
    since = database_made_at().timestamp()
    # This includes drafts that a crash left, because no row references them.
    return discarded + discard_content(
        path.name
        for path in files_folder().glob("[0-9a-f][0-9a-f]/*")
        if path.is_file() and path.stat().st_mtime >= since
    )


def uploaded_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the uploads whose content is on disk, for the archive of the account."""
    rows = file_selectors.shown_attachments(user.pk).order_by("pk")
    for row in rows.iterator(chunk_size=ARCHIVED_AT_ONCE):
        path = content_path(row.sha256)
        if path.exists():
            yield f"files/{row.pk}-{safe_file_name(row.name)}", path
