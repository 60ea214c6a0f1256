"""Reads what an account export contains besides conversations: uploads, folders, entries, the profile, agents.

All of it is user input, whoever wrote it: it is validated as such, and nothing in it reaches another user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID
from zipfile import ZipFile, is_zipfile

from django.conf import settings
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from agents.presets.yaml_text import MAX_YAML_CHARS
from chatapp.features.importing.stream import HEAD, Progress, open_zip, read_list, unpacking
from chatapp.features.importing.values import Unreadable, canonical_id, storable
from chatapp.files.actions import MAX_FOLDER_FILES
from chatapp.files.models import Attachment
from memory.bounds import MAX_IMPORTED, MAX_NAME_CHARS, MAX_PROMPT_CHARS, Day, Id, Number, UtcMoment
from memory.strict_types import StrictTypes

MAX_HEAD_BYTES = 2**20
MAX_JSON_BYTES = 64 * 2**20
MAX_ROWS = {"memory/entries.json": MAX_IMPORTED, "memory/profile_versions.json": MAX_IMPORTED}
MAX_OF_OTHERS = 10_000
"""Row limit of the other files. Users may have a few hundred, and refusing each row beyond costs a query."""
MAX_TEXT_CHARS = 100_000
MAX_REVISIONS = 1_000
_UPLOAD = re.compile(r"files/([0-9a-fA-F-]{36})-[^/]+")
_RESULT = re.compile(r"offloaded/([0-9a-fA-F-]{36})/tool_result-([0-9a-fA-F-]{36})\.txt")

_PRESET = re.compile(r"agents/[^/]+\.yaml")
MAX_PRESETS = 1_000


_Longest = Annotated[str, Field(max_length=MAX_TEXT_CHARS), AfterValidator(storable)]
_Text = Annotated[_Longest, Field(min_length=1)]
_ExportId = Annotated[Id, AfterValidator(canonical_id)]
_Author = Literal["extraction", "user", "operator"]


class Span(StrictTypes):
    conversation_id: _ExportId | None = None
    first_message_id: _ExportId | None = None
    last_message_id: _ExportId | None = None


class Source(Span):
    created_at: UtcMoment


class Revision(StrictTypes):
    revision: Number
    author: _Author
    written_at: UtcMoment
    text: _Text


class Entry(Span):
    """An entry of `memory/entries.json`. Whether it was shared is not imported, or other users could read it."""

    id: _ExportId
    day: Day
    text: _Text
    author: _Author
    state: Literal["kept", "proposed"]
    revision: Number
    sources: list[Source] = Field(default=[], max_length=MAX_REVISIONS)
    earlier: list[Revision] = Field(default=[], max_length=MAX_REVISIONS)
    created_at: UtcMoment
    updated_at: UtcMoment

    def goes_with(self, is_forgotten: Callable[[str], bool]) -> bool:
        """Return whether the entry is forgotten with these conversations, by the rule of `entries_going_with`."""
        if self.conversation_id:
            return is_forgotten(self.conversation_id)
        is_by_hand = self.author == "user" and not self.first_message_id
        said_in = [source.conversation_id for source in self.sources]
        return bool(said_in) and not is_by_hand and all(one and is_forgotten(one) for one in said_in)


class ProfileVersion(StrictTypes):
    version: Number
    author: Literal["user", "consolidation", "forgetting"]
    created_at: UtcMoment
    markdown: _Longest
    sources: list[list[_ExportId]] = []


class FolderFile(StrictTypes):
    id: _ExportId
    name: _Text


class Folder(StrictTypes):
    id: _ExportId
    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS), AfterValidator(storable)]
    instructions: Annotated[str, Field(max_length=MAX_PROMPT_CHARS), AfterValidator(storable)] = ""
    agent: Annotated[Id, AfterValidator(storable)] | None = None
    files: list[FolderFile] = Field(default=[], max_length=MAX_FOLDER_FILES)
    created_at: UtcMoment


Row = TypeVar("Row", bound=BaseModel)


@dataclass(slots=True)
class Account:
    """An open archive. `conversations`, `messages` and `files` map ids in the export to those here (or to rows), and
    are filled while conversations are imported."""

    _zip: ZipFile
    entries: list[Entry] = field(default_factory=list)
    profile: list[ProfileVersion] = field(default_factory=list)
    folders: Mapping[str, Folder] = field(default_factory=dict)
    presets: list[str] = field(default_factory=list)
    """The agents, as YAML."""
    unreadable: int = 0
    conversations: dict[str, UUID] = field(default_factory=dict)
    messages: dict[str, UUID] = field(default_factory=dict)
    files: dict[str, Attachment] = field(default_factory=dict)
    wanted: frozenset[str] = frozenset()
    """The messages that entries reference."""
    uploads: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def said(self, name: str) -> Iterator[dict[str, Any] | None]:
        """Yield the objects listed in a JSON file of the archive, None for each unreadable one. Raise Unreadable."""
        if name not in self._zip.NameToInfo:
            return
        if self._zip.getinfo(name).file_size > MAX_JSON_BYTES:
            raise Unreadable(f"{name} is too large.")
        with unpacking(name), self._zip.open(name) as file:
            for entry in read_list(file, 0, Progress()):
                # A few kilobytes can unpack to millions of entries, and checking them would outlast the worker's lease.
                if entry.index >= MAX_ROWS.get(name, MAX_OF_OTHERS):
                    raise Unreadable(f"{name} has too many rows.")
                yield entry.value

    def read_presets(self, names: Iterable[str]) -> None:
        for name in list(filter(_PRESET.fullmatch, names))[:MAX_PRESETS]:
            content = self._content(name, 4 * MAX_YAML_CHARS)  # a character has at most four bytes
            self.presets.append(content.decode("utf-8", "replace") if content is not None else "")

    def upload(self, file_id: str) -> bytes | None:
        """Return the content of an upload; None if it is missing, too large or damaged."""
        return self._content(self.uploads.get(file_id), settings.MAX_UPLOAD_BYTES)

    def result(self, conversation_id: str, reference: str) -> bytes | None:
        """Return a tool result that was too large for a context; None if it is missing, too large or damaged."""
        return self._content(self.results.get((conversation_id, reference)), settings.MAX_UPLOAD_BYTES)

    def _content(self, name: str | None, most_bytes: int) -> bytes | None:
        # Check the declared size before unpacking anything.
        if name is None or self._zip.getinfo(name).file_size > most_bytes:
            return None
        try:
            with unpacking(name), self._zip.open(name) as file:
                content = file.read(most_bytes + 1)  # the declared size may be false
        except Unreadable:
            return None
        return content if len(content) <= most_bytes else None


@contextmanager
def open_account(path: Path) -> Iterator[Account | None]:
    """Yield the archive; None if the file is not an account export of this service."""
    if not is_zipfile(path):
        yield None
        return
    # Keep the archive open during the import: uploads are read when a conversation shows them.
    with open_zip(path) as archive:
        yield _read(archive) if _is_ours(archive) else None


def _is_ours(archive: ZipFile) -> bool:
    """Return whether account.json says that this is our export. Raise Unreadable."""
    if HEAD not in archive.NameToInfo:
        return False
    with unpacking(HEAD), archive.open(HEAD) as file:
        content = file.read(MAX_HEAD_BYTES)
    try:
        head = json.loads(content)
    # The parser raises RecursionError if lists are nested too deeply.
    except (ValueError, RecursionError):
        raise Unreadable(f"{HEAD} cannot be read.") from None
    return isinstance(head, dict) and head.get("format") == "palimpsest-account" and head.get("version") == 1


def _read(archive: ZipFile) -> Account:
    account = Account(archive)
    account.entries = _all(Entry, "memory/entries.json", account)
    account.profile = _all(ProfileVersion, "memory/profile_versions.json", account)
    account.folders = {each.id: each for each in _all(Folder, "folders.json", account)}
    spans: list[Span] = [span for entry in account.entries for span in (entry, *entry.sources)]
    ids = {span.first_message_id for span in spans} | {span.last_message_id for span in spans}
    account.wanted = frozenset(each for each in ids if each)
    names = archive.namelist()
    account.read_presets(names)
    account.uploads = {canonical_id(found[1]): name for name in names if (found := _UPLOAD.fullmatch(name))}
    results = {name: found for name in names if (found := _RESULT.fullmatch(name))}
    account.results = {(canonical_id(of[1]), canonical_id(of[2])): name for name, of in results.items()}
    return account


def _all(model: type[Row], name: str, account: Account) -> list[Row]:
    """Return the valid rows, and count the others."""
    rows: list[Row] = []
    for each in account.said(name):
        try:
            rows.append(model.model_validate(each))
        except ValidationError:
            account.unreadable += 1
    return rows
