"""Reads the conversations of an export one by one, however large its file is: JSON, or a zip that holds it.

No more than one conversation is in memory, and none that is larger than MAX_COST.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import ijson
from ijson.common import ObjectBuilder

from chatapp.features.importing.values import Unreadable

MAX_COST = 256 * 2**20
"""Of one conversation: its characters, and VALUE_COST for each value in it."""
VALUE_COST = 100
MAX_DEPTH = 50_000
"""LibreChat writes each answer inside its question: two levels a message."""
MAX_UNPACKED_BYTES = 8 * 2**30
READ_AT_ONCE = 256 * 1024

_HOLDS_CONVERSATIONS = re.compile(r"(?:^|/)(?:conversations[^/]*\.json|conversations/[^/]+\.json)$")
_OPENS = ("start_map", "start_array")
_CLOSES = ("end_map", "end_array")


@dataclass(frozen=True, slots=True)
class Entry:
    """A conversation of the file as it was parsed, or why it could not be. `index` counts from 0."""

    index: int
    value: dict[str, Any] | None
    problem: str = ""


@dataclass(slots=True)
class Progress:
    """How many bytes of how many were read."""

    read: int = 0
    total: int = 0


def entries(path: Path, progress: Progress) -> Iterator[Entry]:
    """Yield what the file holds. What breaks off ends with an entry that says so. Raises Unreadable for a file that is
    neither JSON nor a zip with conversations in it."""
    if not is_zipfile(path):
        progress.total = path.stat().st_size
        with path.open("rb") as file:
            yield from _entries(file, 0, progress)
        return
    with ZipFile(path) as archive:
        parts = [info for info in archive.infolist() if _HOLDS_CONVERSATIONS.search(info.filename)]
        progress.total = sum(info.file_size for info in parts)
        if not parts:
            raise Unreadable("The zip holds no conversations.json.")
        if progress.total > MAX_UNPACKED_BYTES:
            raise Unreadable(f"Unpacked it is larger than {MAX_UNPACKED_BYTES / 2**30:,.0f} GB.")
        index = 0
        for part in sorted(parts, key=lambda info: info.filename):
            before = progress.read
            try:
                with archive.open(part) as file:
                    for entry in _entries(file, index, progress):
                        index = entry.index + 1
                        yield entry
            except (BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
                yield Entry(index, None, f"{part.filename[-200:]} cannot be unpacked: {error}")
                index += 1
            progress.read = before + part.file_size


class _Counted:
    """A file that counts what was read of it."""

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        self._file, self._progress = file, progress

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)
        self._progress.read += len(content)
        return content


def _entries(file: IO[bytes], index: int, progress: Progress) -> Iterator[Entry]:
    events = ijson.basic_parse(_Counted(file, progress), use_float=True, buf_size=READ_AT_ONCE)
    try:
        event, value = next(events, ("", None))
        if event == "start_map":
            yield _built(index, event, value, events)
            index += 1
        elif event != "start_array":
            yield Entry(index, None, "This is neither a list of conversations nor one of them.")
            return
        else:
            for event, value in events:
                if event == "end_array":
                    break
                yield _built(index, event, value, events)
                index += 1
        for _ in events:
            pass  # says whether the end is an end
    except (ijson.JSONError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "its end is missing"
        yield Entry(index, None, f"From here on the file is no JSON: {reason}")


def _built(index: int, event: str, value: Any, events: Iterator[tuple[str, Any]]) -> Entry:
    """Return the value that begins with this event, read to its end; a problem in place of one that is too large."""
    if event not in _OPENS:
        return Entry(index, None, "It is no object.")
    builder, depth, cost = ObjectBuilder(), 0, 0
    while True:
        if event in _OPENS:
            depth += 1
        elif event in _CLOSES:
            depth -= 1
        if cost <= MAX_COST:
            cost += VALUE_COST + (len(value) if isinstance(value, str) else 0)
            if depth > MAX_DEPTH:
                cost = MAX_COST + 1
            builder.event(event, value)
            if cost > MAX_COST:
                builder = ObjectBuilder()
        if not depth:
            break
        event, value = next(events)
    if cost > MAX_COST:
        return Entry(index, None, "It is too large.")
    if not isinstance(builder.value, dict):
        return Entry(index, None, "It is no object.")
    return Entry(index, builder.value)
