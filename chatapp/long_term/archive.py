"""Exports a user's memory: the daily files and MEMORY.md, as Markdown in a ZIP archive."""

from __future__ import annotations

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

from chatapp.accounts.archive import ArchiveFile, json_file
from chatapp.accounts.models import User
from chatapp.forgetting.models import ForgetReceipt
from chatapp.long_term.files import daily_entry
from chatapp.long_term.models import MemoryEntry, ProfileVersion
from chatapp.long_term.schemas import entry_shape, revision_shape
from chatapp.long_term.selectors.entries import all_days, day_entries
from chatapp.long_term.selectors.profile import profile_of
from chatapp.operations.clock import iso_time
from memory.long_term.daily import render_day

IN_MEMORY_BYTES = 2**20
ENTRIES_AT_ONCE = 500


def write_archive(user_id: UUID) -> IO[bytes]:
    """Return the ZIP archive as an open file, positioned at its beginning."""
    archive = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - the response closes it
    with ZipFile(archive, "w", ZIP_DEFLATED) as files:
        for name, text in _day_files(user_id):
            files.writestr(name, text)
    archive.seek(0)
    return archive


def _day_files(user_id: UUID) -> Iterator[tuple[str, str]]:
    profile = profile_of(user_id).text
    if profile:
        yield "MEMORY.md", f"{profile}\n"
    for day in all_days(user_id):
        rows = [daily_entry(row) for row in day_entries(user_id, day)]
        yield f"{day.isoformat()}.md", render_day(day, rows)


def memory_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the daily files, the profile, their history and the receipts, for the archive of an account."""
    for name, text in _day_files(user.pk):
        yield f"memory/{name}", text
    entries = MemoryEntry.objects.filter(user=user).select_related("scope")
    entries = entries.prefetch_related("sources", "revisions").order_by("created_at", "pk")
    # After prefetch_related, Django's iterator() requires a chunk size.
    shapes = [_with_revisions(row) for row in entries.iterator(ENTRIES_AT_ONCE)]
    yield "memory/entries.json", json_file(shapes)
    versions = [
        {
            "version": row.number,
            "author": row.author,
            "created_at": iso_time(row.created_at),
            "markdown": row.text,
            "sources": row.sources,
        }
        for row in ProfileVersion.objects.filter(profile__user=user).order_by("number")
    ]
    yield "memory/profile_versions.json", json_file(versions)
    receipts = [
        {"what": row.what, "removed": row.removed, "at": row.at}
        for row in ForgetReceipt.objects.filter(user=user).order_by("at", "pk")
    ]
    yield "memory/receipts.json", json_file(receipts)


def _with_revisions(row: MemoryEntry) -> dict[str, Any]:
    return entry_shape(row) | {"earlier": [revision_shape(past) for past in row.revisions.all()]}
