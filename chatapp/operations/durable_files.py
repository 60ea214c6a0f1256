"""Writes files that are whole or not there, and are there after a power cut."""

from __future__ import annotations

import os
from pathlib import Path


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


def sync_folder(folder: Path) -> None:
    """Make names that came or went in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
