"""Stores bytes by path, on local disk or in an S3-compatible bucket."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from agents.libraries import Library
from chatapp.operations.database.ids import new_id
from chatapp.operations.storage.durable_files import append_lines, replace_file, sync_folder

if TYPE_CHECKING:
    import obstore
    from obstore.store import S3Store
else:
    obstore = Library("obstore")


def failures() -> tuple[type[Exception], ...]:
    """Return the exceptions that a full disk or an unreachable bucket raises."""
    return OSError, obstore.exceptions.BaseError


@dataclass(frozen=True, slots=True)
class StoredObject:
    path: str
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class DiskStore:
    """Stores below a folder. Like the bucket: paths are relative, with slashes, and made of our ids, and writes are
    durable on return."""

    root: Path

    def write(self, path: str, content: bytes) -> None:
        target = self._made(path)
        # Use a draft for each write, because two processes may store the same image at once.
        replace_file(target, content, draft=f".{target.name}.{new_id()}")

    def append(self, path: str, content: bytes) -> None:
        """Add whole lines to the end: all of them, or none. Concurrent appends of several processes do not mix."""
        target = self._made(path)
        append_lines(target, content)
        sync_folder(target.parent)

    def has_lines(self, path: str) -> bool:
        """Return whether anything was appended to the path."""
        return (self.root / path).exists()

    def read(self, path: str) -> bytes:
        """Return the content. Raise FileNotFoundError."""
        return (self.root / path).read_bytes()

    def delete(self, path: str) -> None:
        """Delete the path, if it exists."""
        (self.root / path).unlink(missing_ok=True)

    def delete_folder(self, folder: str) -> None:
        # A conversation may have no folder, and the sweep deletes what is left of one.
        shutil.rmtree(self.root / folder, ignore_errors=True)

    def walk(self) -> Iterator[StoredObject]:
        # Files may be deleted meanwhile, and `rglob` would fail on a missing folder.
        for folder, _, names in os.walk(self.root):
            for path in (Path(folder) / name for name in names):
                with suppress(FileNotFoundError):
                    modified_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                    yield StoredObject(path.relative_to(self.root).as_posix(), modified_at)

    def _made(self, path: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target


@dataclass(frozen=True, slots=True)
class BucketStore:
    """Stores in a bucket. Objects cannot grow, so each append is an object below the path, in the order of its id."""

    bucket: S3Store

    def write(self, path: str, content: bytes) -> None:
        obstore.put(self.bucket, path, content)

    def append(self, path: str, content: bytes) -> None:
        obstore.put(self.bucket, f"{path}/{new_id()}", content)

    def has_lines(self, path: str) -> bool:
        return next(self._below(path), None) is not None

    def read(self, path: str) -> bytes:
        try:
            return bytes(obstore.get(self.bucket, path).bytes())
        except FileNotFoundError:
            # A file that was appended to has no object of this name, but parts below it.
            parts = sorted(self._below(path))
            if not parts:
                raise
            return b"".join(bytes(obstore.get(self.bucket, part).bytes()) for part in parts)

    def delete(self, path: str) -> None:
        # Delete the parts, too, if the file was appended to.
        obstore.delete(self.bucket, [path, *self._below(path)])

    def delete_folder(self, folder: str) -> None:
        # A bucket has no folders, so list the objects below the path and delete them by name.
        paths = list(self._below(folder))
        if paths:
            obstore.delete(self.bucket, paths)

    def walk(self) -> Iterator[StoredObject]:
        for page in obstore.list(self.bucket):
            yield from (StoredObject(item["path"], item["last_modified"]) for item in page)

    def _below(self, path: str) -> Iterator[str]:
        for page in obstore.list(self.bucket, prefix=f"{path}/"):
            yield from (item["path"] for item in page)


ObjectStore = DiskStore | BucketStore
