"""The contents of the bucket for backups: read file by file, and stored into an empty bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.conf import settings

from chatapp.files.object_store import ObjectStore, failures
from chatapp.files.offloads import CONTEXT_FILE, object_store
from chatapp.operations.backups.archive import BackupProblem


class BucketFiles:
    """Implements `chatapp.operations.backups.services.RemoteFiles` for the bucket in the settings."""

    def __init__(self) -> None:
        self._store: ObjectStore = object_store()

    def read_all(self) -> Iterator[tuple[str, bytes]]:
        with _told():
            # Collect all names first: the parts of a file are listed one by one, but read as one file.
            paths = sorted({_whole(found.path) for found in self._store.walk()})
            for path in paths:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    yield path, self._store.read(path)

    def is_empty(self) -> bool:
        with _told():
            return next(iter(self._store.walk()), None) is None

    def store(self, path: str, content: bytes) -> None:
        with _told():
            # Append context files: if one were a single object, `read` would ignore parts that are appended later.
            add = self._store.append if path.endswith(f"/{CONTEXT_FILE}") else self._store.write
            add(path, content)


def bucket_files() -> BucketFiles | None:
    """Return the files of the bucket, or None if files are kept in the data folder."""
    return BucketFiles() if settings.S3_BUCKET else None


def _whole(path: str) -> str:
    """Return the path of the file that an object is a part of, or the path itself."""
    beginning, is_part, _ = path.partition(f"/{CONTEXT_FILE}/")
    return f"{beginning}/{CONTEXT_FILE}" if is_part else path


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except failures() as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise BackupProblem(f"The bucket {settings.S3_BUCKET} does not answer ({said[0][:200]}).") from None
