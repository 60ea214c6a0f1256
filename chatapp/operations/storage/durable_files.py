"""Writes files atomically, and so that they survive a power cut."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import BinaryIO

READ_AT_ONCE = 64 * 1024


def replace_file(path: Path, content: bytes, *, draft: str = "") -> None:
    """Write a file atomically: a reader finds the old or the new content. `draft` is the name of the temporary file."""
    draft_path = path.with_name(draft or f".{path.name}.new")
    try:
        with open(draft_path, "wb") as file:
            file.write(content)
            file.flush()
            # Sync before renaming, or the file could be empty after a power cut.
            os.fsync(file.fileno())
        os.replace(draft_path, path)
    except OSError:
        if draft_path.is_file():
            draft_path.unlink()  # do not leave half a file on a full disk
        raise
    sync_folder(path.parent)


def append_lines(path: Path, content: bytes) -> None:
    """Append whole lines to a file, one process at a time. Remove an unfinished line that a crash left. If the disk is
    full, undo the write and raise OSError."""
    with open(path, "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = _end_of_lines(file)
        file.truncate(end)
        # A disk that becomes full writes only a part, without an error.
        if file.write(content) != len(content):
            file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(file.fileno())


def _end_of_lines(file: BinaryIO) -> int:
    """Return the position after the last complete line."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - READ_AT_ONCE)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def sync_folder(folder: Path) -> None:
    """Make new, renamed and deleted names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
