"""Reads the conversations of an export one by one, however large its file is: JSON, or a zip that holds it.

No more than one conversation is in memory, and none that is larger than MAX_COST.
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
from chatapp.operations.zip_files import open_zip_file

MAX_COST = 256 * 2**20
"""Of one conversation: its characters, and VALUE_COST for each value in it."""
VALUE_COST = 100
MAX_ENTRY_BYTES = MAX_COST
"""Of the file, from the beginning of a conversation: one whose end has not come by then is read no further."""
MAX_DEPTH = 50_000
"""LibreChat writes each answer inside its question: two levels a message."""
# A small zip may unpack to any size.
MAX_UNPACKED_BYTES = 8 * 2**30
MAX_LIST_BYTES = 32 * 2**20
"""Of the list of a zip: about 200,000 files."""
READ_AT_ONCE = 256 * 1024
HEAD = "account.json"
"""Of the export of an account."""
NOTES_OF_MACOS = "__MACOSX/"

_HOLDS_CONVERSATIONS = re.compile(r"(?:^|/)(?:conversations[^/]*\.json|conversations/[^/]+\.json)$")
_DAMAGED = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, zlib.error)
"""What the library raises for a zip that is cut, damaged, encrypted or packed as it does not know."""
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
    """How many bytes of how many were read. `beat` is called whenever more of them are, and may raise."""

    read: int = 0
    total: int = 0
    beat: Callable[[], None] = lambda: None


@contextmanager
def unpacking(name: str) -> Iterator[None]:
    """Raise Unreadable for what cannot be unpacked within; what the disk says of itself passes."""
    try:
        yield
    except (*_DAMAGED, OSError) as error:
        # A place before the file's beginning is EINVAL.
        if isinstance(error, OSError) and error.errno != EINVAL:
            raise
        raise Unreadable(f"{name[-200:]} cannot be unpacked: {str(error)[:200]}") from None


@contextmanager
def open_zip(path: Path) -> Iterator[ZipFile]:
    """Raise Unreadable."""
    with path.open("rb") as file:
        with unpacking("The zip"):
            archive = open_zip_file(file, MAX_LIST_BYTES)
        with archive:
            _rename_as_exported(archive)
            yield archive


def _rename_as_exported(archive: ZipFile) -> None:
    """Give the files the names that they have in an export of ours: Safari unpacks a zip, and macOS packs it again as
    one folder, beside notes of its own."""
    infos = [info for info in archive.infolist() if not info.filename.startswith(NOTES_OF_MACOS)]
    found = (info.filename.removesuffix(HEAD) for info in infos if info.filename.endswith(f"/{HEAD}"))
    folder = next((name for name in found if name.count("/") == 1), "")
    if HEAD not in archive.NameToInfo:
        for info in infos:
            info.filename = info.filename.removeprefix(folder)
    archive.filelist, archive.NameToInfo = infos, {info.filename: info for info in infos}


def entries(path: Path, progress: Progress) -> Iterator[Entry]:
    """Yield what the file holds. What breaks off ends with an entry that says so. Raise Unreadable for a file that is
    neither JSON nor a zip with conversations in it."""
    if not is_zipfile(path):
        progress.total = path.stat().st_size
        with path.open("rb") as file:
            yield from read_list(file, 0, progress)
        return
    with open_zip(path) as archive:
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
                with unpacking(part.filename), archive.open(part) as file:
                    for entry in read_list(file, index, progress):
                        index = entry.index + 1
                        yield entry
            # One damaged file of the zip does not keep the others out.
            except Unreadable as problem:
                yield Entry(index, None, str(problem))
                index += 1
            progress.read = before + part.file_size


class _Counted:
    """A file that counts what was read of it, and of the present entry."""

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        self._file, self._progress = file, progress
        self.entry_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Raise Unreadable where the entry does not end."""
        self._progress.beat()
        # The parser hands a string over as a whole only, and takes ever longer for each part of it.
        if self.entry_bytes > MAX_ENTRY_BYTES:
            raise Unreadable("It is too large, and what follows it was not read.")
        content = self._file.read(size)
        self._progress.read += len(content)
        self.entry_bytes += len(content)
        return content


def read_list(file: IO[bytes], index: int, progress: Progress) -> Iterator[Entry]:
    """Yield the objects of the list in a JSON file, such as conversations, each parsed at once as long as that is
    possible; from then on each is built value by value, which takes ten times as long."""
    counted = _Counted(file, progress)
    ahead = _Ahead(counted)
    while (value := ahead.next_object()) is not None:
        counted.entry_bytes = 0
        yield Entry(index, value)
        index += 1
    # Floats, as `json` makes them: what reads the values knows no Decimal.
    events = ijson.basic_parse(ahead, use_float=True, buf_size=READ_AT_ONCE)
    try:
        event, value = next(events, ("", None))
        if event == "start_map":
            yield _built(index, event, value, events)
            index += 1
        elif event != "start_array":
            yield Entry(index, None, "This is neither a list of conversations nor one of them.")
            return
        else:
            # The null that stands for what was passed.
            if ahead.has_passed:
                next(events)
            for event, value in events:
                if event == "end_array":
                    break
                counted.entry_bytes = 0
                yield _built(index, event, value, events)
                index += 1
        for _ in events:
            pass  # says whether the end is an end
    except Unreadable as problem:
        yield Entry(index, None, str(problem))
    except (ijson.JSONError, UnicodeDecodeError):
        # What the parser says of it is for programmers.
        yield Entry(
            index,
            None,
            "From here on the file is no JSON: its end is missing, or it is another kind of file.",
        )


# Only lists of objects are read ahead; everything else is left to the other parser.
_FIRST = re.compile(r"[ \t\r\n]*\[[ \t\r\n]*(?=\{)")
_NEXT = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=\{)")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON.")


class _Ahead:
    """A file whose objects in its list are parsed as long as they are whole, small and right; as a file of its own it
    holds the rest, as a list that begins with a null where objects were passed."""

    # Python's parser takes NaN and Infinity, which are no JSON.
    _decoder = json.JSONDecoder(parse_constant=_refuse)

    def __init__(self, file: _Counted) -> None:
        self._file = file
        # What is read at once may end within a character.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at = "", 0
        self._undecoded, self._is_taken = b"", False
        self.has_passed = False

    def next_object(self) -> dict[str, Any] | None:
        """Return the next object of the list; None where the other parser has to look at the rest."""
        most_chars = MAX_COST // VALUE_COST  # what is no longer costs less than MAX_COST, whatever it holds
        while True:
            found = (_NEXT if self.has_passed else _FIRST).match(self._text, self._at)
            if found is not None:
                try:
                    value, end = self._decoder.raw_decode(self._text, found.end())
                except (ValueError, RecursionError):
                    pass  # its end may be missing
                else:
                    if end - self._at > most_chars:
                        return None
                    self._at, self.has_passed = end, True
                    return dict(value)
            if len(self._text) - self._at > most_chars or not self._read_more():
                return None

    def _read_more(self) -> bool:
        """Read as much again as is there, so that the time to parse what is cut off stays in proportion."""
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
        # The parser asks for nothing first, to see whether it gets bytes.
        if size and not self._is_taken:
            self._is_taken = True
            # In the order of the file: what is decoded, what the decoder holds back, what it could not decode.
            passed = b"[null" if self.has_passed else b""
            head = passed + self._text[self._at :].encode() + self._decode.getstate()[0] + self._undecoded
        return head or self._file.read(size)


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
                # What was built is let go; the rest is only read, to find the next conversation.
                builder = ObjectBuilder()
        if not depth:
            break
        event, value = next(events)
    if cost > MAX_COST:
        return Entry(index, None, "It is too large.")
    if not isinstance(builder.value, dict):
        return Entry(index, None, "It is no object.")
    return Entry(index, builder.value)
