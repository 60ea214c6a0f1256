"""LibreChat's export of one conversation: a list of messages with parents, or each nested in the one before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chatapp.features.importing.values import (
    ReadContext,
    SourceConversation,
    SourceMessage,
    objects,
    string,
    title_of,
)

NAME = "librechat"


def matches(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("messages"), list) and "conversationId" in item


def read(item: Mapping[str, Any], reading: ReadContext) -> SourceConversation:
    messages = [
        _message(raw, message_id, parent, reading) for raw, message_id, parent in _flat(item["messages"])
    ]
    return SourceConversation(
        id=string(item.get("conversationId")),
        title=title_of(item.get("title")),
        messages=messages,
        created_at=reading.moment(item.get("createdAt")),
        updated_at=reading.moment(item.get("updatedAt")),
        is_archived=item.get("isArchived") is True,
    )


def _flat(messages: list[Any]) -> Iterator[tuple[Mapping[str, Any], str, str | None]]:
    """Yield (message, its id, its parent's id) at any depth."""
    # Reversed, because the last one is popped first. A long chat is nested too deeply for recursion.
    waiting = [(raw, string(raw.get("parentMessageId")) or None) for raw in reversed(list(objects(messages)))]
    count = 0
    while waiting:
        raw, parent = waiting.pop()
        message_id = string(raw.get("messageId")) or f"#{count}"
        count += 1
        yield raw, message_id, parent
        waiting += [(child, message_id) for child in reversed(list(objects(raw.get("children"))))]


def _message(
    raw: Mapping[str, Any], message_id: str, parent: str | None, reading: ReadContext
) -> SourceMessage:
    role = "user" if raw.get("isCreatedByUser") is True else "assistant"
    texts = [*_content(raw.get("content"), reading)]
    texts = texts if any(map(str.strip, texts)) else [string(raw.get("text"))]
    texts += [reading.lost_file(file.get("filename")) for file in objects(raw.get("files"))]
    return reading.message(message_id, parent, role, texts, raw.get("createdAt"), raw.get("model"))


def _content(content: Any, reading: ReadContext) -> Iterator[str]:
    for block in objects(content):
        if block.get("type") == "text":
            text = block.get("text")
            yield string(text.get("value")) if isinstance(text, dict) else string(text)
        else:
            reading.left_out["steps of tools, and reasoning"] += 1
