"""Finds files of the service that other accounts can access, and removes their permissions.

`environment.create_files_private` makes new files private. DATA_DIR may be a home folder or /tmp, so files that the
service did not write keep their permissions.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)

OTHER_ACCOUNTS = stat.S_IRWXG | stat.S_IRWXO
WRITTEN = re.compile(
    r"\.?(palimpsest\.sqlite3|test\.sqlite3|secret_key|beat-schedule)([-.].*)?|serve\.lock|"
    r"memory|files|offloads|imports|\.restore|\.(probe|doctor|readiness)-\d+"
)
"""Names of files and folders that the service writes in the data folder."""


@dataclass(frozen=True, slots=True)
class ExposedPath:
    """A file or folder that other accounts can access or own."""

    path: Path
    mode: int
    is_own: bool


def stored_paths() -> list[Path]:
    """Return the data folder, or only our own files in it if it contains others, and the files of an SQLite database
    elsewhere."""
    folder: Path = settings.DATA_DIR
    own = [folder] if find_foreign() is None else [path for path in folder.iterdir() if is_written(path)]
    return own + [path for path in database_files() if folder not in path.parents]


def find_foreign() -> Path | None:
    """Return a path in the data folder that the service did not write; None if there is none."""
    return next((path for path in sorted(settings.DATA_DIR.iterdir()) if not is_written(path)), None)


def is_written(path: Path) -> bool:
    return bool(WRITTEN.fullmatch(path.name)) or path == settings.STATIC_ROOT or path in database_files()


def database_files() -> list[Path]:
    """Return the possible paths of SQLite's files; none for PostgreSQL."""
    database = settings.DATABASES["default"]
    if not database["ENGINE"].endswith("sqlite3"):
        return []
    return [Path(f"{database['NAME']}{ending}") for ending in ("", "-wal", "-shm", "-journal")]


def find_exposed(paths: Iterable[Path]) -> Iterator[ExposedPath]:
    """Yield exposed paths among these and below them. Skip symbolic links, which lead elsewhere, and static files,
    which are public."""
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path == settings.STATIC_ROOT:
            continue
        try:
            found = path.lstat()
            is_folder = stat.S_ISDIR(found.st_mode)
            if not (is_folder or stat.S_ISREG(found.st_mode)):
                continue
            is_own = found.st_uid == os.geteuid()
            if not is_own or found.st_mode & OTHER_ACCOUNTS:
                yield ExposedPath(path, found.st_mode, is_own)
            if is_folder:
                waiting += path.iterdir()
        except FileNotFoundError:
            continue  # another process deleted it
        except PermissionError:
            continue  # a folder of another account, already yielded


def close_exposed(paths: Sequence[Path]) -> None:
    """Remove the permissions of other accounts from our files. Log in one line how many files are not ours."""
    closed, left = 0, []
    for exposed in find_exposed(paths):
        try:
            if exposed.is_own:
                exposed.path.chmod(exposed.mode & stat.S_IRWXU)
                closed += 1
                continue
        except FileNotFoundError:
            continue
        except OSError:
            pass
        left.append(exposed.path)
    if closed:
        log.info(
            "%d files and folders were open to other accounts of this machine; now they are not.", closed
        )
    if left:
        log.warning(
            "%d files and folders belong to other accounts or cannot be closed to them, such as %s.",
            len(left),
            left[0],
        )
