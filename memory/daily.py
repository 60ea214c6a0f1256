"""The Markdown of a day: entries to text, and back. Where the file lies is not its concern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

_META = re.compile(
    r"<!-- entry (?P<id>\S+)"
    r"(?: \| conversation (?P<conversation>\S+))?"
    r"(?: \| messages (?P<first>\S+)\.\.(?P<last>\S+))?"
    r" \| at (?P<at>\S+) -->"
)
_HEADING = re.compile(r"## \d\d:\d\d(?: · (?P<title>.*))?")
_LOOKS_LIKE_META = re.compile(r"^(\\*<!-- entry )", re.MULTILINE)
_ESCAPED_META = re.compile(r"^\\(\\*<!-- entry )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DailyEntry:
    """One section of a day. `at` carries the user's time zone; `id` is None for a section written by hand."""

    id: str | None
    text: str
    at: datetime | None = None
    conversation_id: str | None = None
    conversation_title: str = ""
    first_message_id: str | None = None
    last_message_id: str | None = None


def _metadata_line(entry: DailyEntry) -> str:
    parts = [f"entry {entry.id}"]
    if entry.conversation_id:
        parts.append(f"conversation {entry.conversation_id}")
    if entry.first_message_id and entry.last_message_id:
        parts.append(f"messages {entry.first_message_id}..{entry.last_message_id}")
    if entry.at:
        parts.append(f"at {entry.at.isoformat()}")
    return f"<!-- {' | '.join(parts)} -->"


def _render_entry(entry: DailyEntry) -> str:
    title = " ".join(entry.conversation_title.split())
    clock = f"{entry.at:%H:%M}" if entry.at else "00:00"
    heading = f"## {clock} · {title}" if title else f"## {clock}"
    # A line of the text that looks like metadata would start a section of its own when parsed.
    text = _LOOKS_LIKE_META.sub(r"\\\1", entry.text.strip())
    return f"{heading}\n{_metadata_line(entry)}\n\n{text}\n"


def render_day(day: date, entries: Sequence[DailyEntry]) -> str:
    """The whole file, in the order given. Only stored entries: each needs `id` and `at`."""
    return "\n".join([f"# {day.isoformat()}\n", *map(_render_entry, entries)])


def _text_between(lines: Sequence[str]) -> str:
    return _ESCAPED_META.sub(r"\1", "\n".join(lines).strip())


def _parse_section(heading: str, meta: re.Match[str], lines: Sequence[str]) -> DailyEntry:
    title = _HEADING.fullmatch(heading)
    return DailyEntry(
        id=meta["id"],
        text=_text_between(lines),
        at=datetime.fromisoformat(meta["at"]),
        conversation_id=meta["conversation"],
        conversation_title=(title["title"] or "") if title else "",
        first_message_id=meta["first"],
        last_message_id=meta["last"],
    )


def parse_day(markdown: str) -> list[DailyEntry]:
    """The sections of a file. Text ahead of the first one is an entry without an id.

    A section begins where a heading is followed by its metadata line; every other heading is text.
    """
    lines = markdown.replace("\r\n", "\n").split("\n")
    starts = [
        (number, meta)
        for number, line in enumerate(lines[1:], start=1)
        if lines[number - 1].startswith("## ") and (meta := _META.fullmatch(line.strip()))
    ]
    first = starts[0][0] - 1 if starts else len(lines)
    preamble = _text_between([line for line in lines[:first] if not re.fullmatch(r"# \d{4}-\d\d-\d\d", line)])
    ends = [number - 1 for number, _ in starts[1:]] + [len(lines)]
    sections = [
        _parse_section(lines[number - 1], meta, lines[number + 1 : end])
        for (number, meta), end in zip(starts, ends, strict=False)
    ]
    return [DailyEntry(id=None, text=preamble), *sections] if preamble else sections
