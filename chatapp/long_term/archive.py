"""A user's memory to take away: the daily files and MEMORY.md, as Markdown in a zip."""

from __future__ import annotations

from tempfile import SpooledTemporaryFile
from typing import IO
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

from chatapp.long_term.files import daily_entry
from chatapp.long_term.selectors.entries import all_days, day_entries
from chatapp.long_term.selectors.profile import profile_of
from memory.daily import render_day

IN_MEMORY_BYTES = 2**20


def write_archive(user_id: UUID) -> IO[bytes]:
    """Read from its beginning on."""
    archive = SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - whoever sends it closes it
    with ZipFile(archive, "w", ZIP_DEFLATED) as files:
        add_memory(files, user_id)
    archive.seek(0)
    return archive


def add_memory(files: ZipFile, user_id: UUID, folder: str = "") -> None:
    """From the rows, day by day."""
    profile = profile_of(user_id).text
    if profile:
        files.writestr(f"{folder}MEMORY.md", f"{profile}\n")
    for day in all_days(user_id):
        rows = [daily_entry(row) for row in day_entries(user_id, day)]
        files.writestr(f"{folder}{day.isoformat()}.md", render_day(day, rows))
