"""The files of a user for the archive of the account: uploads, and what was offloaded."""

from __future__ import annotations

from collections.abc import Iterator

from chatapp.accounts.archive import ArchiveFile, safe_file_name
from chatapp.accounts.models import User
from chatapp.files.attachments import content_path
from chatapp.files.models import Offload
from chatapp.files.offloads import read_content
from chatapp.files.selectors import shown_attachments
from chatapp.operations.errors import NotFound

ROWS_AT_ONCE = 500


def uploaded_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the uploads whose content is on disk."""
    for row in shown_attachments(user.pk).order_by("pk").iterator(chunk_size=ROWS_AT_ONCE):
        path = content_path(row.sha256)
        if path.exists():
            yield f"files/{row.pk}-{safe_file_name(row.name)}", path


def offloaded_files(user: User) -> Iterator[ArchiveFile]:
    """Yield what was offloaded from contexts, as far as its content is stored."""
    rows = Offload.objects.filter(conversation__user=user).order_by("pk")
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        try:
            yield f"offloaded/{row.conversation_id}/{row.name}", read_content(row)
        except NotFound:
            continue
