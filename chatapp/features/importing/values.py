"""The common form of all sources: one conversation with its messages as a tree."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from chatapp.files.models import MAX_FILE_NAME_CHARS
from chatapp.operations.database.access import uuid_or_none
from chatapp.operations.database.text import normalize_text
from chatapp.operations.errors import TooLarge
from memory.bounds import MAX_NAME_CHARS, MAX_TITLE_CHARS, was_possible

QUOTED = "(A system message of the imported chat, quoted:)"


class Unreadable(Exception):
    """A conversation cannot be imported. The message explains the reason to its owner."""


@dataclass(slots=True)
class SourceMessage:
    """A message of a source. One without a role is left out, and its children move to its parent.

    `columns` are other validated columns of the row; `branch` is the source's own branch id, if it has branches.
    """

    id: str
    parent: str | None
    role: str = ""
    text: str = ""
    created_at: datetime | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    branch: str = ""


@dataclass(slots=True)
class SourceConversation:
    """A conversation. `shown` is the id of the last message on the path that the source shows; empty: the newest.

    `left_out` counts content that is not imported, by a readable name.
    """

    id: str
    messages: list[SourceMessage]
    title: str = ""
    shown: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    is_archived: bool = False
    is_pinned: bool = False
    left_out: Counter[str] = field(default_factory=Counter)
    branches: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Lineages by branch id in an export of this service. If empty, they are made from the tree."""
    compactions: list[dict[str, Any]] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The user's choices in an export of this service, not validated."""
    pauses: list[tuple[datetime, datetime | None]] = field(default_factory=list)
    """When memory was paused: (beginning, end). The end is None if the pause had not ended."""


def source_key(program: str, source: SourceConversation) -> str:
    """Return the key of a conversation: from its id in the program, or from its text if it has no id."""
    said = "" if source.id else "".join(f"\n{each.role}\n{each.text}" for each in source.messages)
    return key_of_id(program, f"{source.id}{said}")


def key_of_id(program: str, source_id: str) -> str:
    # JSON may contain lone surrogates, which UTF-8 cannot encode.
    return hashlib.sha256(f"{program}\n{source_id}".encode("utf-8", "replace")).hexdigest()


ReadForgottenKeys = Callable[[], frozenset[str] | None]
"""Returns the keys of conversations that the user has forgotten since the import began; None if everything was
forgotten and nothing more must be stored."""


@dataclass(frozen=True, slots=True)
class ReadContext:
    """What a reader needs besides the source: the present time, and a counter of what is left out."""

    now: datetime
    left_out: Counter[str]

    def moment(self, raw: Any) -> datetime | None:
        """Parse a time in ISO 8601 or as a Unix time in seconds, milliseconds or finer. Return None if it is missing or
        impossible."""
        if raw is None or raw == "":
            return None
        moment = _parse_moment(raw)
        if moment is None or not was_possible(moment, self.now):
            self.left_out["impossible dates"] += 1
            return None
        return moment

    def lost_file(self, name: Any) -> str:
        """Count a file that cannot be imported, and return the line that takes its place."""
        self.left_out["images and other files"] += 1
        return f"[A file that was not imported: {title_of(name) or 'file'}]"

    def message(
        self, id: str, parent: str | None, role: str, texts: Iterable[str], said_at: Any, model: Any = None
    ) -> SourceMessage:
        """Return a message of these texts, without a role if they are empty or too long. `model` wrote an answer."""
        text = self.text("\n\n".join(filter(str.strip, texts)))
        if not text:
            return SourceMessage(id, parent)
        columns = model_columns(model) if role == "assistant" else {}
        return SourceMessage(id, parent, role, text, self.moment(said_at), columns)

    def text(self, raw: str) -> str | None:
        """Return the text as it is stored; None if it is too long."""
        try:
            return normalize_text(raw, settings.MAX_MESSAGE_CHARS)
        except TooLarge:
            self.left_out[f"messages of more than {settings.MAX_MESSAGE_CHARS:,} characters"] += 1
            return None


def _parse_moment(raw: Any) -> datetime | None:
    try:
        if isinstance(raw, str):
            moment = datetime.fromisoformat(raw)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        if isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw):
            seconds = float(raw)
            while seconds > 1e11:  # milliseconds, microseconds, nanoseconds
                seconds /= 1_000
            return datetime.fromtimestamp(seconds, UTC)
    # `fromtimestamp` raises any of these, depending on platform and number.
    except (ValueError, OverflowError, OSError):
        pass
    return None


def quoted(text: str) -> str:
    """Return a system message of a source as a quote by the user, so that it does not instruct models here."""
    lines = "\n".join(f"> {line}" for line in text.split("\n"))
    return f"{QUOTED}\n\n{lines}"


def objects(raw: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list; nothing if `raw` is no list."""
    if isinstance(raw, list):
        yield from (item for item in raw if isinstance(item, dict))


def string(raw: Any) -> str:
    """Return `raw` if it is a string, else an empty string."""
    return raw if isinstance(raw, str) else ""


def canonical_id(raw: str) -> str:
    """Return a UUID in the spelling of our exports, so that equal ids are equal texts; any other id unchanged."""
    return str(uuid_or_none(raw) or raw)


def storable(text: str) -> str:
    """Normalise a text for storage without checking its length."""
    return normalize_text(text, len(text))


def title_of(raw: Any) -> str:
    # Truncate first, because a title in a file may have any length.
    line = normalize_text(" ".join(string(raw)[: 10 * MAX_TITLE_CHARS].split()), 10 * MAX_TITLE_CHARS)
    return line[:MAX_TITLE_CHARS]


def file_name(raw: Any) -> str:
    return storable(string(raw)[:MAX_FILE_NAME_CHARS])


def model_columns(raw: Any) -> dict[str, Any]:
    """Return the column with the model that wrote a message; empty if the source names none."""
    name = title_of(raw)[:MAX_NAME_CHARS] if raw else ""
    return {"model_name": name} if name else {}
