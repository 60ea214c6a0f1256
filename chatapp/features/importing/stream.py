"""Reads the conversations of an export one by one, whatever the size of its file: JSON, or a zip that contains it.

At most one conversation is in memory, and none that is larger than MAX_COST.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile, is_zipfile

import ijson
from ijson.common import ObjectBuilder

from chatapp.features.importing.values import Unreadable
from chatapp.operations.storage.zip_files import open_zip_file

MAX_COST = 256 * 2**20
"""Limit of one conversation: its characters, plus VALUE_COST for each value."""
VALUE_COST = 100
MAX_ENTRY_BYTES = MAX_COST
"""Bytes from the beginning of a conversation after which the reader stops looking for its end."""
MAX_DEPTH = 50_000
"""LibreChat nests each answer in its question: two levels per message."""
# A small zip may unpack to any size.
MAX_UNPACKED_BYTES = 8 * 2**30
MAX_LIST_BYTES = 32 * 2**20
"""Limit of a zip's directory: about 200,000 files."""
READ_AT_ONCE = 256 * 1024
HEAD = "account.json"
"""Only the export of an account contains this file."""
NOTES_OF_MACOS = "__MACOSX/"

_HOLDS_CONVERSATIONS = re.compile(r"(?:^|/)(?:conversations[^/]*\.json|conversations/[^/]+\.json)$")
_DAMAGED = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error)
"""What the library raises for a zip that is truncated, damaged, encrypted or compressed by an unknown method."""
_OPENS = ("start_map", "start_array")
_CLOSES = ("end_map", "end_array")


@dataclass(frozen=True, slots=True)
class Entry:
    """A parsed conversation of the file, or why it could not be parsed. `index` counts from 0."""

    index: int
    value: dict[str, Any] | None
    problem: str = ""


@dataclass(slots=True)
class Progress:
    """Bytes read, and their total. `beat` is called before each read, and may raise."""

    read: int = 0
    total: int = 0
    beat: Callable[[], None] = lambda: None


@contextmanager
def unpacking(name: str) -> Iterator[None]:
    """Raise Unreadable for anything that cannot be unpacked in the block. Let errors of the disk pass."""
    try:
        yield
    except (*_DAMAGED, OSError) as error:
        # An offset before the beginning of the file causes EINVAL.
        if isinstance(error, OSError) and error.errno != EINVAL:
            raise
        raise Unreadable(f"{name[-200:]} cannot be unpacked: {str(error)[:200]}") from None


@contextmanager
def open_zip(path: Path) -> Iterator[ZipFile]:
    """Open a zip. Raise Unreadable."""
    with path.open("rb") as file:
        with unpacking("The zip"):
            archive = open_zip_file(file, MAX_LIST_BYTES)
        with archive:
            _rename_as_exported(archive)
            yield archive


def _rename_as_exported(archive: ZipFile) -> None:
    """Rename the files as in our own export: Safari unpacks a zip, and macOS packs it again as one folder, with
    metadata files beside it."""
    infos = [info for info in archive.infolist() if not info.filename.startswith(NOTES_OF_MACOS)]
    found = (info.filename.removesuffix(HEAD) for info in infos if info.filename.endswith(f"/{HEAD}"))
    folder = next((name for name in found if name.count("/") == 1), "")
    if HEAD not in archive.NameToInfo:
        for info in infos:
            info.filename = info.filename.removeprefix(folder)
    archive.filelist, archive.NameToInfo = infos, {info.filename: info for info in infos}


def entries(path: Path, progress: Progress) -> Iterator[Entry]:
    """Yield the conversations of the file. If reading breaks off, the last entry says so. Raise Unreadable if the file
    is neither JSON nor a zip with conversations."""
    if not is_zipfile(path):
        progress.total = path.stat().st_size
        with path.open("rb") as file:
            yield from read_list(file, 0, progress)
        return
    with open_zip(path) as archive:
        parts = [info for info in archive.infolist() if _HOLDS_CONVERSATIONS.search(info.filename)]
        progress.total = sum(info.file_size for info in parts)
        if not parts:
            raise Unreadable("The zip contains no conversations.json.")
        if progress.total > MAX_UNPACKED_BYTES:
            raise Unreadable(f"Unpacked, it is larger than {MAX_UNPACKED_BYTES / 2**30:,.0f} GB.")
        index = 0
        for part in sorted(parts, key=lambda info: info.filename):
            before = progress.read
            try:
                with unpacking(part.filename), archive.open(part) as file:
                    for entry in read_list(file, index, progress):
                        index = entry.index + 1
                        yield entry
            # One damaged file of the zip must not exclude the others.
            except Unreadable as problem:
                yield Entry(index, None, str(problem))
                index += 1
            progress.read = before + part.file_size


class _Counted:
    """A file that counts the bytes read in total and of the present entry."""

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        self._file, self._progress = file, progress
        self.entry_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Raise Unreadable if the entry does not end."""
        self._progress.beat()
        # The parser returns a string only as a whole, and takes ever longer for each further piece.
        if self.entry_bytes > MAX_ENTRY_BYTES:
            raise Unreadable("It is too large, and the rest of the file was not read.")
        content = self._file.read(size)
        self._progress.read += len(content)
        self.entry_bytes += len(content)
        return content


def read_list(file: IO[bytes], index: int, progress: Progress) -> Iterator[Entry]:
    """Yield the objects of the list in a JSON file, e.g. conversations. Parse each at once while that is possible, then
    the rest value by value, which takes ten times as long."""
    counted = _Counted(file, progress)
    ahead = _Ahead(counted)
    while (value := ahead.next_object()) is not None:
        counted.entry_bytes = 0
        yield Entry(index, value)
        index += 1
    # Use floats, as `json` does: the readers of the values don't support Decimal.
    events = ijson.basic_parse(ahead, use_float=True, buf_size=READ_AT_ONCE)
    try:
        event, value = next(events, ("", None))
        if event == "start_map":
            yield _built(index, event, value, events)
            index += 1
        elif event != "start_array":
            yield Entry(index, None, "This is neither a list of conversations nor a conversation.")
            return
        else:
            # Skip the null in place of the objects parsed before.
            if ahead.has_passed:
                next(events)
            for event, value in events:
                if event == "end_array":
                    break
                counted.entry_bytes = 0
                yield _built(index, event, value, events)
                index += 1
        for _ in events:
            pass  # raises if the end is missing or not the end
    except Unreadable as problem:
        yield Entry(index, None, str(problem))
    except (ijson.JSONError, UnicodeDecodeError):
        # The parser's own message is for programmers.
        yield Entry(
            index,
            None,
            "The rest of the file is not valid JSON: the file is cut off, or of another type.",
        )


# Only lists of objects are parsed ahead; everything else is left to the other parser.
_FIRST = re.compile(r"[ \t\r\n]*\[[ \t\r\n]*(?=\{)")
_NEXT = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=\{)")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON.")


class _Ahead:
    """Parses the objects of a list while they are complete, small and valid. As a file, it contains the rest of the
    list, with a leading null if objects were parsed."""

    # Python's parser accepts NaN and Infinity, which are not JSON.
    _decoder = json.JSONDecoder(parse_constant=_refuse)

    def __init__(self, file: _Counted) -> None:
        self._file = file
        # A read may end within a character.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at = "", 0
        self._undecoded, self._is_taken = b"", False
        self.has_passed = False

    def next_object(self) -> dict[str, Any] | None:
        """Return the next object of the list; None if the other parser has to read the rest."""
        most_chars = MAX_COST // VALUE_COST  # a shorter text costs less than MAX_COST, whatever it contains
        while True:
            found = (_NEXT if self.has_passed else _FIRST).match(self._text, self._at)
            if found is not None:
                try:
                    value, end = self._decoder.raw_decode(self._text, found.end())
                except (ValueError, RecursionError):
                    pass  # the object may be incomplete
                else:
                    if end - self._at > most_chars:
                        return None
                    self._at, self.has_passed = end, True
                    return dict(value)
            if len(self._text) - self._at > most_chars or not self._read_more():
                return None

    def _read_more(self) -> bool:
        """Read as much again as is buffered, so that parsing an incomplete object again takes time in proportion."""
        content = self._file.read(max(READ_AT_ONCE, len(self._text) - self._at))
        try:
            more = self._decode.decode(content)
        except UnicodeDecodeError:
            self._undecoded = content
            return False
        self._text, self._at = self._text[self._at :] + more, 0
        return bool(content)

    def read(self, size: int) -> bytes:
        head = b""
        # The parser first reads zero bytes, to check the type.
        if size and not self._is_taken:
            self._is_taken = True
            # In file order: decoded text, bytes held back by the decoder, bytes that it could not decode.
            passed = b"[null" if self.has_passed else b""
            head = passed + self._text[self._at :].encode() + self._decode.getstate()[0] + self._undecoded
        return head or self._file.read(size)


def _built(index: int, event: str, value: Any, events: Iterator[tuple[str, Any]]) -> Entry:
    """Return the value that begins with this event, read to its end; a problem if it is too large."""
    if event not in _OPENS:
        return Entry(index, None, "It is not a JSON object.")
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
                # Drop what was built. The rest is read only to find the next conversation.
                builder = ObjectBuilder()
        if not depth:
            break
        event, value = next(events)
    if cost > MAX_COST:
        return Entry(index, None, "It is too large.")
    if not isinstance(builder.value, dict):
        return Entry(index, None, "It is not a JSON object.")
    return Entry(index, builder.value)
