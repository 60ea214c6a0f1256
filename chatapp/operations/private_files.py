"""Finds and closes files that other accounts may read: folders become 0700, files 0600.

New ones are created so, by `environment.create_files_private`.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

log = logging.getLogger(__name__)

OTHER_ACCOUNTS = stat.S_IRWXG | stat.S_IRWXO
FOLDER_MODE, FILE_MODE = 0o700, 0o600


@dataclass(frozen=True, slots=True)
class ExposedPath:
    """A file or folder that other accounts may read, or own."""

    path: Path
    is_folder: bool
    is_own: bool


def stored_paths() -> list[Path]:
    """Return the data folder, and an SQLite database outside it with the files beside it."""
    paths: list[Path] = [settings.DATA_DIR]
    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        paths += [Path(f"{database['NAME']}{ending}") for ending in ("", "-wal", "-shm", "-journal")]
    return [path for path in paths if path == settings.DATA_DIR or settings.DATA_DIR not in path.parents]


def find_exposed(paths: Iterable[Path]) -> Iterator[ExposedPath]:
    """Yield what is exposed of these and of all below them. Does not follow symbolic links, which lead elsewhere, and
    leaves out static files, which are public."""
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
                yield ExposedPath(path, is_folder, is_own)
            if is_folder:
                waiting += path.iterdir()
        except FileNotFoundError:
            continue  # files come and go while others work
        except PermissionError:
            continue  # a folder of another account, which was yielded before


def close_exposed(paths: Sequence[Path]) -> None:
    """Remove the rights of other accounts from our files, and log in one line how many files are not ours."""
    closed, left = 0, []
    for exposed in find_exposed(paths):
        try:
            if exposed.is_own:
                exposed.path.chmod(FOLDER_MODE if exposed.is_folder else FILE_MODE)
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
