"""The file of a backup: a compressed tar that is written and read as a stream, in bounded memory."""

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

from chatapp.operations.durable_files import sync_folder

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "database"
DATA = "data"
MAX_MANIFEST_BYTES = 2**20


class BackupProblem(Exception):
    """Why a backup cannot be made or restored: one sentence for an operator."""


class Manifest(BaseModel):
    """What a backup holds. `tables` are the columns of each table, on PostgreSQL only."""

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    made_at: datetime
    database: Literal["sqlite", "postgresql"]
    migrations: list[tuple[str, str]]
    tables: dict[str, list[str]] = {}
    key_check: str
    """Encrypted with the deployment's SECRET_KEY, to tell whether another deployment has the same."""


@dataclass(frozen=True, slots=True)
class ArchiveWriter:
    tar: tarfile.TarFile

    def add_bytes(self, name: str, content: bytes) -> None:
        self.tar.addfile(_described(name, len(content)), io.BytesIO(content))

    def add_file(self, name: str, path: Path) -> bool:
        """Add a file as long as it is now. Return False where it is gone meanwhile."""
        with suppress(FileNotFoundError), open(path, "rb") as file:
            # Of the open file: it may grow meanwhile, and a tar has the length before the content.
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
    """Yield what writes the archive, which has its name once it is whole. Raise BackupProblem where it exists."""
    _refuse_existing(path)
    with make_draft(path, ".part") as draft:
        with open(draft, "wb") as file:
            # Without a name: the header would have that of the draft.
            with gzip.GzipFile("", "wb", compresslevel=1, fileobj=file) as packed:
                with tarfile.open(fileobj=packed, mode="w|") as tar:
                    yield ArchiveWriter(tar)
            file.flush()
            os.fsync(file.fileno())
        # By another backup that began later.
        _refuse_existing(path)
        # Only a whole backup has the name: a part of one could be taken for it.
        os.replace(draft, path)
        sync_folder(path.parent)


@contextmanager
def make_draft(beside: Path, ending: str) -> Iterator[Path]:
    """Yield an empty private file in the same folder, and remove what is left of it. No two have the same name: two
    backups may be made at once."""
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
    """Write all that the archive holds below an empty folder and return its manifest.

    Raise BackupProblem for no backup, a damaged one, and one of a newer program.
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
            while packed.read(2**20):  # the check sum comes last
                pass
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise BackupProblem(f"{path} is no backup, or it is damaged or cut off.") from None
    return manifest


def _read_manifest(tar: tarfile.TarFile, first: tarfile.TarInfo | None) -> Manifest:
    file = tar.extractfile(first) if first and first.name == MANIFEST and first.isfile() else None
    if file is None or first is None or first.size > MAX_MANIFEST_BYTES:
        raise tarfile.ReadError("no manifest")
    try:
        manifest = Manifest.model_validate_json(file.read())
    except ValidationError:
        raise BackupProblem("The backup is of another program, or of a newer version of this one.") from None
    if manifest.format > FORMAT:
        raise BackupProblem("The backup was made by a newer version: install that one first.")
    return manifest


def _unpack(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file. Refuse links and names that lead out of the folder."""
    name = PurePosixPath(member.name)
    content = tar.extractfile(member) if member.isreg() else None
    if content is None or name.is_absolute() or ".." in name.parts or name.parts[0] not in (DATABASE, DATA):
        raise tarfile.ReadError("not a file of a backup")
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    # "x": no file of an archive takes the place of another.
    with open(target, "xb") as file:
        shutil.copyfileobj(content, file, 2**20)
        os.fsync(file.fileno())
