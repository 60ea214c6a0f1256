"""Reads the process environment into typed values; `settings` is its only caller."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path
from typing import Any

TRUE_WORDS = frozenset({"1", "true", "yes", "on"})


def text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def number(name: str, default: int) -> int:
    raw = text(name)
    if not raw:
        return default
    try:
        return int(raw.replace("_", ""))
    except ValueError:
        raise SystemExit(f"{name} must be a whole number, not {raw!r}.") from None


def flag(name: str, default: bool) -> bool:
    raw = text(name).lower()
    return raw in TRUE_WORDS if raw else default


def words(name: str, default: str = "") -> list[str]:
    return [word for word in text(name, default).replace(",", " ").split() if word]


def json_object(name: str) -> dict[str, Any]:
    try:
        value = json.loads(text(name, "{}"))
    except ValueError as error:
        raise SystemExit(f"{name} is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise SystemExit(f'{name} must be a JSON object, like {{"keep_recent": 20}}.')
    return value


def json_objects(name: str) -> list[dict[str, Any]]:
    try:
        value = json.loads(text(name, "[]"))
    except ValueError as error:
        raise SystemExit(f"{name} is not valid JSON: {error}") from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise SystemExit(f"{name} must be a JSON list of objects.")
    return value


def load_dotenv(path: Path) -> None:
    """`NAME=value` lines; what the environment already says wins."""
    if not path.is_file():
        return
    for line in path.read_text().splitlines():
        name, found, value = line.partition("=")
        if found and not name.lstrip().startswith("#"):
            os.environ.setdefault(name.strip(), value.strip().strip("\"'"))


def create_files_private() -> None:
    """Let this process create folders 0700 and files 0600, whatever the umask it was started with.

    The umask and not a mode with each call: SQLite, Celery's schedule and other libraries take none. The settings say
    it because every process of ours, a worker and beat as well, reads them before it creates a file.
    """
    os.umask(0o077)


def writable_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise SystemExit(
            f"The data folder {path} cannot be written ({error.strerror}): set DATA_DIR to one that can."
        ) from None
    return path


def secret_key(path: Path) -> str:
    """The key of this installation, made at first start and kept in the data folder."""
    if not path.exists():
        draft = path.with_name(f".{path.name}-{os.getpid()}")
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):  # another process of the same first start was faster
            path.hardlink_to(draft)
        draft.unlink()
    return path.read_text().strip()
