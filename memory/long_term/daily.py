"""Renders the entries of a day as Markdown, and parses them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time

_META = re.compile(
    r"<!-- entry (?P<id>\S+)"
    r"(?: \| conversation (?P<conversation>\S+))?"
    r"(?: \| messages (?P<first>\S+)\.\.(?P<last>\S+))?"
    r" \| at (?P<at>\S+) -->"
)
_HEADING = re.compile(r"## \d\d:\d\d(?: · (?P<title>.*))?")
# Only valid times, because `time.fromisoformat` raises for others.
_BY_HAND = re.compile(r"## (?P<clock>(?:[01]\d|2[0-3]):[0-5]\d)(?:[ ·:–-]+(?P<rest>.*))?")
_BEGINS_SECTION = r"<!-- entry |## \d\d:\d\d"
# Match leading backslashes, so that a text that was already escaped comes back unchanged, and leading spaces, which the
# parser ignores.
_LOOKS_LIKE_SECTION = re.compile(rf"^([^\S\n]*)(\\*(?:{_BEGINS_SECTION}))", re.MULTILINE)
_ESCAPED_SECTION = re.compile(rf"^([^\S\n]*)\\(\\*(?:{_BEGINS_SECTION}))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DailyEntry:
    """One section of a day. `at` is in the user's time zone. `id` is None for a section that a person wrote, of which
    only the `clock` in its heading is known, if it has one."""

    id: str | None
    text: str
    at: datetime | None = None
    conversation_id: str | None = None
    conversation_title: str = ""
    first_message_id: str | None = None
    last_message_id: str | None = None
    clock: time | None = None


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
    # Escape lines that the parser would take as the beginning of a section.
    text = _LOOKS_LIKE_SECTION.sub(r"\1\\\2", entry.text.strip())
    return f"{heading}\n{_metadata_line(entry)}\n\n{text}\n"


def render_day(day: date, entries: Sequence[DailyEntry]) -> str:
    """Return the whole file, in the given order. Each entry must be stored: it needs `id` and `at`."""
    return "\n".join([f"# {day.isoformat()}\n", *map(_render_entry, entries)])


def _text_between(lines: Sequence[str]) -> str:
    return _ESCAPED_SECTION.sub(r"\1\2", "\n".join(lines).strip())


def _parse_stored(heading: str, meta: re.Match[str], lines: Sequence[str]) -> DailyEntry:
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


def _parse_section(lines: Sequence[str]) -> DailyEntry:
    """Return one section as an entry. The first line is its heading; if a person wrote it, the text begins after the
    time."""
    heading, *rest = lines
    meta = _META.fullmatch(rest[0].strip()) if rest else None
    if meta:
        return _parse_stored(heading, meta, rest[1:])
    by_hand = _BY_HAND.fullmatch(heading.rstrip())
    assert by_hand is not None
    text = _text_between([by_hand["rest"] or "", *rest])
    return DailyEntry(id=None, text=text, clock=time.fromisoformat(by_hand["clock"]))


def _begins_section(line: str, following: str) -> bool:
    return line.startswith("## ") and bool(
        _META.fullmatch(following.strip()) or _BY_HAND.fullmatch(line.rstrip())
    )


def parse_day(markdown: str) -> list[DailyEntry]:
    """Return the sections of a file. Text before the first one is an entry without an id.

    A section begins with a heading followed by its metadata line or, if a person wrote it, with a heading such as `##
    14:05`. Every other heading is text. Raise ValueError for metadata without a valid time.
    """
    # Not `splitlines`, which also splits at form feeds and Unicode separators.
    lines = markdown.replace("\r\n", "\n").split("\n")
    following = [*lines[1:], ""]
    starts = [number for number, line in enumerate(lines) if _begins_section(line, following[number])]
    ahead = lines[: starts[0] if starts else len(lines)]
    preamble = _text_between([line for line in ahead if not re.fullmatch(r"# \d{4}-\d\d-\d\d", line)])
    ends = [*starts[1:], len(lines)]
    sections = [_parse_section(lines[start:end]) for start, end in zip(starts, ends, strict=False)]
    return [DailyEntry(id=None, text=preamble), *sections] if preamble else sections
