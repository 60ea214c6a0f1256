"""Converts stored messages and their parts into the values of `memory`, and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, cast

from django.db.models import IntegerField, TextField
from django.db.models.functions import Cast

from agents.tools.registry import TOOLS_READING_STORED_DATA
from chatapp.conversations.models import Message
from memory import types
from memory.summaries.summary import quoted_message


def _file_line(*, file_id: str, name: str, mime_type: str, size_bytes: int, type: str) -> types.TextPart:
    """Return the line that represents a file other than an image; the model reads its content with a tool."""
    return types.TextPart(f"[Attached file {file_id}: {name} ({mime_type}, {size_bytes:,} bytes)]")


_PART_TYPES: Mapping[str, Callable[..., Any]] = {
    "text": types.TextPart,
    "image": types.ImagePart,
    "file": _file_line,
    "tool_call": types.ToolCallPart,
    "tool_result": types.ToolResultPart,
    "reasoning": types.ReasoningPart,
}


def parts_from_json(stored: Iterable[Mapping[str, Any]]) -> tuple[types.Part, ...]:
    return tuple(_PART_TYPES[part["type"]](**part) for part in stored)


def parts_to_json(parts: Iterable[types.Part]) -> list[dict[str, Any]]:
    """Return the parts as they are stored, without None values and without data URLs of images."""
    return [
        {name: value for name, value in asdict(part).items() if value is not None and name != "data_url"}
        for part in parts
    ]


MESSAGE_COLUMNS = (
    Cast("id", TextField()),
    "role",
    Cast("parts", TextField()),
    "token_estimate",
    "position",
    Cast("pinned", IntegerField()),
    Cast("created_at", TextField()),
    "kind",
)
"""Read as plain text, because converting each column of a context's two thousand rows would cost more than the rest."""
MESSAGE_SQL = """
CAST(id AS text), role, CAST(parts AS text), token_estimate, position, CAST(pinned AS integer),
CAST(created_at AS text), kind
"""
"""The same columns for fixed SQL."""


def messages_from_columns(rows: Sequence[tuple[Any, ...]]) -> list[types.Message]:
    """Return messages from rows of MESSAGE_COLUMNS, in the same order. The parts of all rows are parsed at once."""
    all_parts = json.loads(f"[{','.join(row[2] for row in rows)}]")
    found = [
        types.Message(
            role,
            _read_parts(parts),
            tokens,
            _dashed(row_id),
            position,
            bool(pinned),
            read_moment(created_at),
            _read_kind(kind),
        )
        for (row_id, role, _, tokens, position, pinned, created_at, kind), parts in zip(
            rows, all_parts, strict=True
        )
    ]
    return [_as_data(message) if message.role == "system" else message for message in found]


def _as_data(message: types.Message) -> types.Message:
    """Return a system message unchanged if an API client has pinned it to keep it in force; else quoted."""
    return message if message.pinned else quoted_message(message)


def _read_kind(stored: str) -> types.Kind:
    # An edited answer is history like any other; only its conversation shows who wrote it.
    return "message" if stored == Message.Kind.EDITED else cast(types.Kind, stored)


def _read_parts(stored: list[dict[str, Any]]) -> tuple[types.Part, ...]:
    # Nearly every message is one text, which is read faster without the table of types.
    if len(stored) == 1 and stored[0]["type"] == "text":
        return (types.TextPart(stored[0]["text"]),)
    return parts_from_json(stored)


def _dashed(row_id: str) -> str:
    """Return the id with its dashes, which SQLite does not store."""
    if len(row_id) == 36:
        return row_id
    return f"{row_id[:8]}-{row_id[8:12]}-{row_id[12:16]}-{row_id[16:20]}-{row_id[20:]}"


def read_moment(stored: str) -> datetime:
    """Return a moment read as text: SQLite stores UTC without a zone, PostgreSQL with +00."""
    return datetime.fromisoformat(stored if "+" in stored else f"{stored}+00:00")


def message_value(row: Message) -> types.Message:
    message = types.Message(
        role=cast(types.Role, row.role),
        parts=parts_from_json(row.parts),
        tokens=row.token_estimate,
        id=str(row.id),
        position=row.position,
        pinned=row.pinned,
        created_at=row.created_at,
        kind=_read_kind(row.kind),
    )
    return _as_data(message) if message.role == "system" else message


def text_of(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return the text parts, joined by line breaks."""
    return "\n".join(part["text"] for part in parts if part["type"] == "text")


def reasoning_of(parts: Sequence[Mapping[str, Any]]) -> str:
    return "".join(part["text"] for part in parts if part["type"] == "reasoning")


def results_in(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts that tools returned."""
    return [part["text"] for part in parts if part["type"] == "tool_result"]


def results_from_outside(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the results of tools that do not read stored content such as memory or files."""
    return results_in([part for part in parts if part.get("name") not in TOOLS_READING_STORED_DATA])
