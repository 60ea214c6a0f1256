"""Open WebUI's export of chats: a list, each chat with `history.messages` as a tree."""

from __future__ import annotations

import re
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

NAME = "open-webui"
ROLES = ("user", "assistant", "system")
DETAILS = re.compile(r'<details type="(?:reasoning|tool_calls|code_interpreter)"')
END = "</details>"


def matches(item: Mapping[str, Any]) -> bool:
    chat = item.get("chat")
    return isinstance(chat, dict) and ("history" in chat or "messages" in chat)


def read(item: Mapping[str, Any], reading: ReadContext) -> SourceConversation:
    chat = item["chat"]
    history = chat.get("history")
    history = history if isinstance(history, dict) else {}
    tree = history.get("messages")
    messages = list(_tree(tree, reading)) if isinstance(tree, dict) and tree else list(_line(chat, reading))
    return SourceConversation(
        id=string(item.get("id")) or string(chat.get("id")),
        title=title_of(item.get("title")) or title_of(chat.get("title")),
        messages=messages,
        shown=string(history.get("currentId")),
        created_at=reading.moment(item.get("created_at") or chat.get("timestamp")),
        updated_at=reading.moment(item.get("updated_at")),
        is_archived=item.get("archived") is True,
        is_pinned=item.get("pinned") is True,
    )


def _tree(tree: Mapping[str, Any], reading: ReadContext) -> Iterator[SourceMessage]:
    for message_id, raw in tree.items():
        if isinstance(raw, dict):
            yield _message(raw, message_id, string(raw.get("parentId")) or None, reading)


def _line(chat: Mapping[str, Any], reading: ReadContext) -> Iterator[SourceMessage]:
    """Yield the messages of an old chat, which has no tree."""
    before = None
    for number, raw in enumerate(objects(chat.get("messages"))):
        message_id = f"#{number}"
        yield _message(raw, message_id, before, reading)
        before = message_id


def _message(
    raw: Mapping[str, Any], message_id: str, parent: str | None, reading: ReadContext
) -> SourceMessage:
    role = string(raw.get("role"))
    texts = [_without_details(string(raw.get("content")), reading)]
    texts += [reading.lost_file(file.get("name")) for file in objects(raw.get("files"))]
    if role not in ROLES:
        return SourceMessage(message_id, parent)
    model = raw.get("modelName") or raw.get("model")
    return reading.message(message_id, parent, role, texts, raw.get("timestamp"), model)


def _without_details(text: str, reading: ReadContext) -> str:
    """Return the text without the reasoning and tool calls that Open WebUI writes into answers."""
    kept: list[str] = []
    at = 0
    while (details := DETAILS.search(text, at)) and (end := text.find(END, details.end())) >= 0:
        reading.left_out["steps of tools, and reasoning"] += 1
        kept.append(text[at : details.start()])
        at = end + len(END)
    return "".join((*kept, text[at:])).strip() if kept else text
