"""Imports a file, one conversation after the other. What was brought along before is passed over, so that an import
that was cut short goes on when it is begun again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chatapp.accounts.models import User
from chatapp.features.importing.actions import store_source
from chatapp.features.importing.formats import chatgpt, claude, librechat, open_webui, palimpsest
from chatapp.features.importing.selectors import is_own, was_imported
from chatapp.features.importing.stream import Progress, entries
from chatapp.features.importing.summaries import summaries_of
from chatapp.features.importing.tree import Grown, grow
from chatapp.features.importing.values import Reading, SourceConversation, Unreadable, quoted
from chatapp.files.models import Attachment
from chatapp.files.selectors import attachments_by_id
from chatapp.operations import clock
from chatapp.operations.errors import ServiceError
from chatapp.operations.work_budget import TO_THE_END, Pace

FORMATS = (palimpsest, chatgpt, claude, open_webui, librechat)
MAX_PROBLEMS = 200
MAX_REASON_CHARS = 300


@dataclass(slots=True)
class Report:
    """What became of a file. `problems` names the first of those that could not be read, `left_out` counts what stayed
    behind of those that could."""

    source: str = ""
    conversations: int = 0
    messages: int = 0
    known: int = 0
    problem_count: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def add_problem(self, index: int, reason: str, title: str = "") -> None:
        self.problem_count += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append({"index": index, "title": title, "reason": reason[:MAX_REASON_CHARS]})

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "conversations": self.conversations,
            "messages": self.messages,
            "known": self.known,
            "problem_count": self.problem_count,
            # Without titles: they are the user's words, and this is no place that forgetting reaches.
            "problems": [{"index": each["index"], "reason": each["reason"]} for each in self.problems],
            "left_out": dict(sorted(self.left_out.items())),
        }


Told = Callable[[Report, Progress], bool]
"""Called after each conversation; False ends the import here, to be gone on with later."""


def import_file(
    *, user: User, path: Path, report: Report, tell: Told | None = None, pace: Pace = TO_THE_END
) -> bool:
    """Import what the file holds and return whether its end was reached. Raises Unreadable where it is no export."""
    progress = Progress()
    for entry in entries(path, progress):
        if entry.value is None:
            report.add_problem(entry.index, entry.problem)
        else:
            _import_entry(user, entry.index, entry.value, report, pace)
        if tell is not None and not tell(report, progress):
            return False
    return True


def _import_entry(user: User, index: int, value: dict[str, Any], report: Report, pace: Pace) -> None:
    read = next((each for each in FORMATS if each.matches(value)), None)
    if read is None:
        report.add_problem(index, "It is no conversation of a program that is known here.")
        return
    report.source = report.source or read.NAME
    reading = Reading(clock.now(), Counter())
    title = ""
    try:
        source = read.read(value, reading)
        if read is not palimpsest:
            _quote_instructions(source)
        title = source.title
        key = _key(read.NAME, source)
        if was_imported(user, key) or (read is palimpsest and is_own(user, source.id)):
            report.known += 1
            return
        _store(user, source, key, reading, report, pace)
        report.left_out.update(source.left_out)
    except Unreadable as error:
        report.add_problem(index, str(error), title)
    except ServiceError as error:
        report.add_problem(index, error.message, title)


def _quote_instructions(source: SourceConversation) -> None:
    for message in source.messages:
        if message.role == "system":
            message.role, message.text = "user", quoted(message.text)


def _key(name: str, source: SourceConversation) -> str:
    """Return the key of a conversation: of its id, else of what it says."""
    hashed = hashlib.sha256(f"{name}\n{source.id}".encode("utf-8", "replace"))
    if not source.id:
        for message in source.messages:
            hashed.update(f"\n{message.role}\n{message.text}".encode("utf-8", "replace"))
    return hashed.hexdigest()


def _store(
    user: User, source: SourceConversation, key: str, reading: Reading, report: Report, pace: Pace
) -> None:
    grown = grow(source)
    files = _files_of(user, grown)
    grown = replace(grown, messages=[_with_files(message, files, reading) for message in grown.messages])
    is_new = store_source(
        user=user,
        source=source,
        source_key=key,
        grown=grown,
        summaries=summaries_of(source, grown, reading),
        files=files,
        now=reading.now,
        pace=pace,
    )
    if is_new:
        report.conversations += 1
        report.messages += len(grown.messages)
    else:
        report.known += 1


def _files_of(user: User, grown: Grown) -> Mapping[str, Attachment]:
    """Return those of the user's own uploads that the messages show, by id."""
    named = {
        part["file_id"]
        for message in grown.messages
        for part in message.columns.get("parts", ())
        if "file_id" in part
    }
    return attachments_by_id(user.pk, named) if named else {}


def _with_files(message: Any, files: Mapping[str, Attachment], reading: Reading) -> Any:
    parts = message.columns.get("parts")
    if not parts or not any("file_id" in part for part in parts):
        return message
    stored = [_file_part(part, files, reading) if "file_id" in part else part for part in parts]
    return replace(message, columns={**message.columns, "parts": stored})


def _file_part(part: dict[str, Any], files: Mapping[str, Attachment], reading: Reading) -> dict[str, Any]:
    row = files.get(part["file_id"])
    if row is None:
        reading.left_out["images and other files"] += 1
        return {"type": "text", "text": f"[A file that was not imported: {part['name']}]"}
    own = {"file_id": str(row.pk), "mime_type": row.mime_type}
    if row.is_image:
        return {"type": "image", **own, "width": row.width, "height": row.height}
    return {"type": "file", **own, "name": row.name, "size_bytes": row.size_bytes}
