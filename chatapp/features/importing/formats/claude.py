"""Claude's export: `conversations.json`, each conversation with its `chat_messages`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chatapp.features.importing.values import (
    ReadContext,
    SourceConversation,
    SourceMessage,
    objects,
    string,
    title_of,
)

NAME = "claude"
ROLES = {"human": "user", "user": "user", "assistant": "assistant", "system": "system"}


def matches(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("chat_messages"), list)


def read(item: Mapping[str, Any], reading: ReadContext) -> SourceConversation:
    messages: list[SourceMessage] = []
    for number, raw in enumerate(objects(item["chat_messages"])):
        # Older exports contain no parents: each message follows the one before it.
        before = messages[-1].id if messages else None
        parent = string(raw["parent_message_uuid"]) if "parent_message_uuid" in raw else before
        messages.append(_message(raw, string(raw.get("uuid")) or f"#{number}", parent, reading))
    return SourceConversation(
        id=string(item.get("uuid")),
        title=title_of(item.get("name")),
        messages=messages,
        shown=string(item.get("current_leaf_message_uuid")),
        created_at=reading.moment(item.get("created_at")),
        updated_at=reading.moment(item.get("updated_at")),
        is_pinned=item.get("is_starred") is True,
    )


def _message(
    raw: Mapping[str, Any], message_id: str, parent: str | None, reading: ReadContext
) -> SourceMessage:
    role = ROLES.get(string(raw.get("sender")), "")
    if not role:
        return SourceMessage(message_id, parent)
    return reading.message(message_id, parent, role, _texts(raw, reading), raw.get("created_at"))


def _texts(raw: Mapping[str, Any], reading: ReadContext) -> list[str]:
    texts: list[str] = []
    for block in objects(raw.get("content")):
        if block.get("type") == "text":
            texts.append(string(block.get("text")))
        else:
            reading.left_out["steps of tools, and reasoning"] += 1
    texts = texts if any(map(str.strip, texts)) else [string(raw.get("text"))]
    for attachment in objects(raw.get("attachments")):
        name = title_of(attachment.get("file_name")) or "file"
        texts.append(f"[Attached file: {name}]\n{string(attachment.get('extracted_content'))}".strip())
    for file in objects(raw.get("files")):
        texts.append(reading.lost_file(file.get("file_name")))
    return texts
