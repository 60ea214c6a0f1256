"""Makes a backup of the running deployment, and restores one into an empty deployment."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, cast

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from chatapp.operations import clock, encryption
from chatapp.operations.backups.archive import (
    DATA,
    MANIFEST,
    ArchiveWriter,
    BackupProblem,
    Manifest,
    unpack_archive,
    write_archive,
)
from chatapp.operations.backups.databases import (
    check_database,
    has_accounts,
    is_of_another_program,
    open_snapshot,
    restore_database,
)
from chatapp.operations.serving.embedded import lock_folder
from chatapp.operations.serving.listener import CannotServe

KEY = "secret_key"
OFFLOADS = "offloads"
FOLDERS = ("files", OFFLOADS)
"""The folders to back up. Daily files are rendered again from their rows, and all other files belong to processes."""
KEY_CHECK = "palimpsest"


@dataclass(frozen=True, slots=True)
class Backup:
    size_bytes: int
    file_count: int
    has_key: bool


class RemoteFiles(Protocol):
    """A bucket that replaces the folder of offloaded results. Each method raises BackupProblem."""

    def read_all(self) -> Iterator[tuple[str, bytes]]:
        """Yield (path, content) of each file."""
        ...

    def is_empty(self) -> bool: ...

    def store(self, path: str, content: bytes) -> None: ...


def make_backup(path: Path, bucket: RemoteFiles | None = None) -> Backup:
    """Write database, files and key to a new private file, while the service runs. Raise BackupProblem.

    Files of a bucket are written like those of the data folder, so either can be restored into the other.

    Files are read after the database, so none that the database names is missing, unless deleted meanwhile.
    """
    try:
        with write_archive(path) as archive:
            # Close it before reading files, which may take hours: an open transaction would block migrations.
            with open_snapshot(path) as snapshot:
                manifest = Manifest(
                    made_at=clock.now(),
                    database=cast(Literal["sqlite", "postgresql"], connection.vendor),
                    migrations=snapshot.migrations,
                    tables=snapshot.tables,
                    key_check=encryption.encrypt(KEY_CHECK),
                )
                # First, because a restore reads it before it unpacks anything.
                archive.add_bytes(MANIFEST, manifest.model_dump_json().encode())
                snapshot.write(archive)
            has_key = _holds_our_key(_key_path())
            if has_key:
                archive.add_file(f"{DATA}/{KEY}", _key_path())
            file_count = sum(_add_folder(archive, name) for name in _local_folders(bucket))
            file_count += _add_bucket(archive, bucket) if bucket else 0
    except OSError as error:
        raise BackupProblem(f"{path} cannot be written: {error.strerror or error}.") from None
    except (DatabaseError, sqlite3.Error) as error:
        raise BackupProblem(f"The database cannot be read ({str(error).strip()}).") from None
    return Backup(path.stat().st_size, file_count, has_key)


def _add_folder(archive: ArchiveWriter, name: str) -> int:
    """Add all files below a folder, except locks and drafts, and return their number."""
    root = _data_folder()
    # `rglob` would fail if a folder is deleted meanwhile.
    found = sorted(Path(folder) / file for folder, _, files in os.walk(root / name) for file in files)
    kept = (path for path in found if not path.name.startswith(".") and path.suffix != ".new")
    return sum(archive.add_file(f"{DATA}/{path.relative_to(root).as_posix()}", path) for path in kept)


def _add_bucket(archive: ArchiveWriter, bucket: RemoteFiles) -> int:
    count = 0
    for count, (path, content) in enumerate(bucket.read_all(), start=1):  # noqa: B007
        archive.add_bytes(f"{DATA}/{OFFLOADS}/{path}", content)
    return count


def _local_folders(bucket: RemoteFiles | None) -> list[str]:
    """Return the names of the FOLDERS that the deployment uses: the bucket replaces that of offloaded results."""
    return [name for name in FOLDERS if name != OFFLOADS or bucket is None]


def _data_folder() -> Path:
    return Path(settings.DATA_DIR)


def _key_path() -> Path:
    return _data_folder() / KEY


def _holds_our_key(path: Path) -> bool:
    """Return whether the file contains the key in use. SECRET_KEY of the environment overrides it."""
    return path.is_file() and path.read_text().strip() == settings.SECRET_KEY


def restore_backup(path: Path, bucket: RemoteFiles | None = None) -> Manifest:
    """Restore a backup into this deployment, which must be empty, migrate it, and return the manifest.

    The backup is unpacked and checked before anything is changed. Raise BackupProblem.
    """
    with _sole_process():
        _refuse_what_is_used(bucket)
        # In the data folder, so that files are moved instead of copied.
        staged = _data_folder() / ".restore"
        shutil.rmtree(staged, ignore_errors=True)  # of an interrupted restore
        staged.mkdir()
        try:
            manifest = unpack_archive(path, staged)
            check_database(manifest)
            key = _key_of(staged / DATA / KEY, manifest)
            # Before the files: if it fails, their folders are still empty for another attempt. Also, files older than
            # the database are assumed to belong to another one, and never deleted.
            restore_database(staged, manifest)
            if bucket is not None:
                _fill_bucket(bucket, staged / DATA / OFFLOADS)
            _move_files(staged / DATA)
        except OSError as error:
            raise BackupProblem(
                f"The data folder cannot be written ({error.strerror}); empty it and try again."
            ) from None
        finally:
            shutil.rmtree(staged, ignore_errors=True)
        settings.SECRET_KEY = key  # for the rest of this process, which started with another key
        call_command("migrate", verbosity=0, interactive=False)
    return manifest


@contextmanager
def _sole_process() -> Iterator[None]:
    """Keep the service from starting on this folder meanwhile. Raise BackupProblem if it runs."""
    try:
        lock = lock_folder(_data_folder())
    except CannotServe as error:
        raise BackupProblem(str(error)) from None
    with lock:
        yield


def _refuse_what_is_used(bucket: RemoteFiles | None) -> None:
    is_empty = (
        "a backup is restored into an empty deployment only: set DATA_DIR and DATABASE_URL to a new one."
    )
    try:
        if has_accounts():
            raise BackupProblem(f"This database has accounts, and {is_empty}")
        if is_of_another_program():
            raise BackupProblem(f"This database has tables of another program, and {is_empty}")
    except DatabaseError as error:
        raise BackupProblem(f"The database cannot be used ({str(error).strip()}).") from None
    if bucket is not None and not bucket.is_empty():
        raise BackupProblem(
            f"The bucket has files below {OFFLOADS}: empty that folder of it, or name another."
        )
    for name in _local_folders(bucket):
        if any(path.is_file() and path.name[0] != "." for path in (_data_folder() / name).rglob("*")):
            raise BackupProblem(f"The data folder has files below {name}, and {is_empty}")


def _key_of(restored: Path, manifest: Manifest) -> str:
    """Return the SECRET_KEY of the restored deployment. Raise BackupProblem if it cannot decrypt stored secrets."""
    is_given = not _holds_our_key(_key_path())
    if restored.is_file():
        key = restored.read_text().strip()
        if is_given and key != settings.SECRET_KEY:
            raise BackupProblem("SECRET_KEY is set to another key than the backup has: unset it.")
        return key
    try:
        encryption.decrypt(manifest.key_check)
    except encryption.SecretUnreadable:
        raise BackupProblem(
            "The backup was made with a SECRET_KEY from the environment, which it does not hold: set the same one."
        ) from None
    return str(settings.SECRET_KEY)


def _fill_bucket(bucket: RemoteFiles, restored: Path) -> None:
    """Move the files to the bucket, not to the data folder."""
    for file in sorted(path for path in restored.rglob("*") if path.is_file()):
        bucket.store(file.relative_to(restored).as_posix(), file.read_bytes())
    shutil.rmtree(restored, ignore_errors=True)


def _move_files(restored: Path) -> None:
    for name in FOLDERS:
        # One by one, because the folder may be a mount point or a link, which cannot be replaced.
        for file in sorted(path for path in (restored / name).rglob("*") if path.is_file()):
            target = _data_folder() / file.relative_to(restored)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(file, target)
            os.utime(target)  # as in `restore_backup`: not older than the database
    if (restored / KEY).is_file():
        (restored / KEY).replace(_key_path())
