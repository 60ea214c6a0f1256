"""Changes made by applying a file, field by field, as text. Secrets and values of the environment are not shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

MAX_SHOWN_CHARS = 80
MARKS = {"created": "+", "changed": "~", "unchanged": "="}


@dataclass(frozen=True, slots=True)
class Change:
    """A changed field, with its values as text. `before` is None for a new object and for a hidden value."""

    field: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Difference:
    """One object of the file: new, changed or unchanged."""

    name: str
    is_new: bool
    changes: tuple[Change, ...]

    @property
    def state(self) -> str:
        return "created" if self.is_new else "changed" if self.changes else "unchanged"


@dataclass(frozen=True, slots=True)
class SectionDifference:
    """The objects of one section. `left` contains the names of objects that the file does not mention; they stay."""

    section: str
    things: tuple[Difference, ...]
    left: tuple[str, ...]


def changed_columns(
    row: Model, wanted: Mapping[str, Any], *, is_new: bool, is_hidden: Callable[[str], bool]
) -> list[Change]:
    """Set the columns of a row, unsaved, and return the changes; of a new row, all columns."""
    changes = []
    for column, after in wanted.items():
        before = getattr(row, column)
        if is_new or before != after:
            setattr(row, column, after)
            changes.append(describe_change(column, before, after, is_new=is_new, is_hidden=is_hidden(column)))
    return changes


def describe_change(field: str, before: Any, after: Any, *, is_new: bool, is_hidden: bool) -> Change:
    if is_hidden:
        return Change(field, None, "set" if is_new else "changed")
    return Change(field, None if is_new else _shown(before), _shown(after))


def _shown(value: Any) -> str:
    if isinstance(value, str) or value is None:
        text = value or "none"
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, dict | list):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(value)
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 1]}…"


def describe(differences: Iterable[SectionDifference]) -> list[str]:
    """Return the lines that an operator reads."""
    lines = []
    for section in differences:
        if not section.things and not section.left:
            continue
        lines.append(f"{section.section}:")
        for thing in section.things:
            lines.append(f"  {MARKS[thing.state]} {thing.name}")
            lines += [f"      {_line(change)}" for change in thing.changes]
        if section.left:
            lines.append(f"  not in the file, left as it is: {', '.join(section.left)}")
    return lines


def _line(change: Change) -> str:
    if change.before is None:
        return f"{change.field}: {change.after}"
    return f"{change.field}: {change.before} → {change.after}"
