"""Writes files that are whole or not there, and are there after a power cut."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import BinaryIO

READ_AT_ONCE = 64 * 1024


def replace_file(path: Path, content: bytes, *, draft: str = "") -> None:
    """Write a file in one step: a reader finds the former content or this one. `draft` is its name until then."""
    draft_path = path.with_name(draft or f".{path.name}.new")
    try:
        with open(draft_path, "wb") as file:
            file.write(content)
            file.flush()
            # Before it has the name: after a power cut the name could lead to an empty file.
            os.fsync(file.fileno())
        os.replace(draft_path, path)
    except OSError:
        if draft_path.is_file():
            draft_path.unlink()  # a full disk has no room for half a file
        raise
    sync_folder(path.parent)


def append_lines(path: Path, content: bytes) -> None:
    """Add whole lines to the end of a file, one process at a time. A line that a crash left unfinished goes; what does
    not fit on the disk is taken back. Raise OSError."""
    with open(path, "a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        end = _end_of_lines(file)
        file.truncate(end)
        # A disk that becomes full takes a part of it, without an error.
        if file.write(content) != len(content):
            file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(file.fileno())


def _end_of_lines(file: BinaryIO) -> int:
    """Return where the last whole line ends."""
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
    """Make names that came or went in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
