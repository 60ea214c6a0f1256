"""Our own export of one conversation, with its branches and summaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from chatapp.conversations.models import Message
from chatapp.features.importing.values import (
    ReadContext,
    SourceConversation,
    SourceMessage,
    Unreadable,
    canonical_id,
    file_name,
    model_columns,
    objects,
    string,
    title_of,
)
from memory.bounds import FIRST_MOMENT, MAX_ID, MAX_ID_CHARS, MAX_PARTS, MAX_TOKENS

NAME = "palimpsest"
TEXTS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "reasoning": ("text",),
    "tool_call": ("call_id", "name", "arguments"),
    "tool_result": ("call_id", "name", "text"),
}
SETTINGS = ("temporary", "memory", "mode", "model", "agent", "folder", "context_policy", "hooks")
FILES = ("image", "file")
COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "compaction_tokens")


def matches(item: Mapping[str, Any]) -> bool:
    return item.get("format") == NAME and isinstance(item.get("messages"), list)


def read(item: Mapping[str, Any], reading: ReadContext) -> SourceConversation:
    if item.get("version") != 1:
        raise Unreadable("It was exported by a newer version of this service.")
    raw = [*objects(item["messages"]), *objects(item.get("other_versions"))]
    return SourceConversation(
        id=canonical_id(string(item.get("id"))),
        title=title_of(item.get("title")),
        messages=[_message(each, reading) for each in raw],
        shown=string(item.get("branch")),
        created_at=reading.moment(item.get("created_at")),
        updated_at=reading.moment(item.get("last_activity_at")),
        is_archived=item.get("archived") is True,
        is_pinned=item.get("pinned") is True,
        branches=_branches(item.get("branches")),
        compactions=[dict(each) for each in objects(item.get("compactions"))],
        settings={name: item.get(name) for name in SETTINGS},
        pauses=list(_pauses(item.get("memory_pauses"), reading)),
    )


def _pauses(raw: Any, reading: ReadContext) -> Iterator[tuple[datetime, datetime | None]]:
    for each in objects(raw):
        # If only the beginning or the end is readable, assume a longer pause rather than a shorter one.
        began_at = reading.moment(each.get("began_at")) or FIRST_MOMENT
        yield began_at, reading.moment(each.get("ended_at"))


def _branches(raw: Any) -> dict[str, list[tuple[str, int]]]:
    if not isinstance(raw, dict) or not raw:
        raise Unreadable("It does not list its branches.")
    return {name: list(_lineage(lineage)) for name, lineage in raw.items()}


def _lineage(raw: Any) -> Iterator[tuple[str, int]]:
    if not isinstance(raw, list):
        raise Unreadable("It does not say where its branches start.")
    for pair in raw:
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise Unreadable("It does not say where its branches start.")
        yield pair[0], _whole(pair[1], MAX_ID)


def _whole(raw: Any, most: int) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw <= most:
        return raw
    raise Unreadable("It contains a number that is not valid in an export.")


def _message(raw: Mapping[str, Any], reading: ReadContext) -> SourceMessage:
    role, status, kind = (string(raw.get(name)) for name in ("role", "status", "kind"))
    if role not in Message.Role or status not in Message.Status or kind not in Message.Kind:
        raise Unreadable("A message in it has an unknown role, status or kind.")
    parts = list(_parts(raw, reading))
    columns = {
        "position": _whole(raw.get("position"), MAX_ID),
        "parts": parts,
        "kind": kind,
        # No run is imported that could finish the message.
        "status": Message.Status.INTERRUPTED if status == Message.Status.STREAMING else status,
        "pinned": raw.get("pinned") is True,
        "usage": read_usage(raw.get("usage")),
        "forgotten_at": reading.now if raw.get("forgotten") is True else None,
        **model_columns(raw.get("model")),
    }
    return SourceMessage(
        id=canonical_id(string(raw.get("id"))),
        parent=canonical_id(string(raw.get("parent"))) or None,
        role=role,
        text="".join(string(part.get("text")) for part in parts),
        created_at=reading.moment(raw.get("created_at")),
        columns=columns,
        branch=string(raw.get("branch")),
    )


def _parts(raw: Mapping[str, Any], reading: ReadContext) -> Iterator[dict[str, Any]]:
    content = raw.get("content")
    if isinstance(content, str):
        text = reading.text(content)
        if text:
            yield {"type": "text", "text": text}
        return
    for part in list(objects(content))[:MAX_PARTS]:
        kind = string(part.get("type"))
        if kind in FILES:
            yield _file(part, raw)
        elif kind in TEXTS:
            texts = {name: reading.text(string(part.get(name))) for name in TEXTS[kind]}
            if all(text is not None for text in texts.values()):
                yield {"type": kind, **texts, **(_of_result(part) if kind == "tool_result" else {})}


def _of_result(part: Mapping[str, Any]) -> dict[str, Any]:
    reference = canonical_id(string(part.get("offload_ref"))[:MAX_ID_CHARS])
    stored = {"offload_ref": reference} if reference else {}
    return {"is_error": part.get("is_error") is True, **stored}


def _file(part: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part as exported. Whether the file exists is checked when the message is stored."""
    file_id = canonical_id(string(part.get("file_id"))[:MAX_ID_CHARS])
    attached = objects(message.get("attachments"))
    named = next((each for each in attached if canonical_id(string(each.get("id"))) == file_id), {})
    # An image part has no name, but the attachments of its message do.
    name = file_name(part.get("name")) or file_name(named.get("name")) or "file"
    return {"type": string(part.get("type")), "file_id": file_id, "name": name}


def read_usage(raw: Any) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    usage: dict[str, Any] = {
        name: _whole(raw[name], MAX_TOKENS) for name in COUNTS if raw.get(name) is not None
    }
    cost = raw.get("cost", False)
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < MAX_TOKENS
    if cost is None or is_number:  # None if the model has no price
        usage["cost"] = cost
    return usage
