"""The backup file: a compressed tar, written and read as a stream in bounded memory."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from chatapp.operations.storage.durable_files import sync_folder

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "database"
DATA = "data"
MAX_MANIFEST_BYTES = 2**20


class BackupProblem(Exception):
    """Why a backup cannot be made or restored: one sentence for an operator."""


class Manifest(BaseModel):
    """The contents of a backup. `tables` has the columns of each table, on PostgreSQL only."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    made_at: datetime
    database: Literal["sqlite", "postgresql"]
    migrations: list[tuple[str, str]]
    tables: dict[str, list[str]] = {}
    key_check: str
    """Encrypted with SECRET_KEY, to check whether another deployment has the same key."""


@dataclass(frozen=True, slots=True)
class ArchiveWriter:
    tar: tarfile.TarFile

    def add_bytes(self, name: str, content: bytes) -> None:
        self.tar.addfile(_described(name, len(content)), io.BytesIO(content))

    def add_file(self, name: str, path: Path) -> bool:
        """Add a file with its current length. Return False if it was deleted meanwhile."""
        with suppress(FileNotFoundError), open(path, "rb") as file:
            # Use the length of the open file, which may grow: a tar has the length before the content.
            self.tar.addfile(_described(name, os.fstat(file.fileno()).st_size), file)
            return True
        return False


def _described(name: str, size_bytes: int) -> tarfile.TarInfo:
    described = tarfile.TarInfo(name)
    described.size, described.mode = size_bytes, 0o600
    described.mtime = int(datetime.now(UTC).timestamp())
    return described


@contextmanager
def write_archive(path: Path) -> Iterator[ArchiveWriter]:
    """Yield a writer. The archive gets its name when it is complete. Raise BackupProblem if the name exists."""
    _refuse_existing(path)
    with make_draft(path, ".part") as draft:
        with open(draft, "wb") as file:
            # Pass an empty name, or the header would contain that of the draft.
            with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file) as packed:
                with tarfile.open(fileobj=packed, mode="w|") as tar:
                    yield ArchiveWriter(tar)
            file.flush()
            os.fsync(file.fileno())
        # Another backup may have created it meanwhile.
        _refuse_existing(path)
        # Rename only a complete backup, or a partial one could be mistaken for it.
        os.replace(draft, path)
        sync_folder(path.parent)


@contextmanager
def make_draft(beside: Path, ending: str) -> Iterator[Path]:
    """Yield an empty private file in the same folder, and delete it afterwards. Its name is unique, because two backups
    may run at once."""
    descriptor, name = tempfile.mkstemp(ending, f".{beside.name}.", beside.parent)
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise BackupProblem(f"{path} exists already; give another name.")


def unpack_archive(path: Path, folder: Path) -> Manifest:
    """Extract the archive to an empty folder and return its manifest.

    Raise BackupProblem if the file is not a backup, is damaged, or was made by a newer version.
    """
    try:
        file = open(path, "rb")
    except OSError as error:
        raise BackupProblem(f"{path} cannot be read: {error.strerror}.") from None
    try:
        with file, gzip.open(file) as packed:
            with tarfile.open(fileobj=packed, mode="r|") as tar:
                members = iter(tar)
                manifest = _read_manifest(tar, next(members, None))
                for member in members:
                    _unpack(tar, member, folder)
            while packed.read(2**20):  # the checksum comes last
                pass
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise BackupProblem(f"{path} is not a backup, or it is damaged or incomplete.") from None
    return manifest


def _read_manifest(tar: tarfile.TarFile, first: tarfile.TarInfo | None) -> Manifest:
    file = tar.extractfile(first) if first and first.name == MANIFEST and first.isfile() else None
    if file is None or first is None or first.size > MAX_MANIFEST_BYTES:
        raise tarfile.ReadError("no manifest")
    try:
        manifest = Manifest.model_validate_json(file.read())
    except ValidationError:
        raise BackupProblem("The backup was made by another program, or by a newer version of this one.") from None
    if manifest.format > FORMAT:
        raise BackupProblem("The backup was made by a newer version: install that one first.")
    return manifest


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Extract one file. Refuse links and names that lead out of the folder."""
    name = PurePosixPath(member.name)
    content = tar.extractfile(member) if member.isreg() else None
    if content is None or name.is_absolute() or ".." in name.parts or name.parts[0] not in (DATABASE, DATA):
        raise tarfile.ReadError("not a file of a backup")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    # "x", so that no file of an archive overwrites another.
    with open(target, "xb") as file:
        shutil.copyfileobj(content, file, 2**20)
        os.fsync(file.fileno())
