"""ChatGPT's export: `conversations.json`, each conversation a `mapping` of nodes with their parents."""

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

NAME = "chatgpt"
ROLES = ("user", "assistant", "system")
# ChatGPT's page renders these marks in another form, e.g. as links. Private-use characters delimit them.
_MARK = re.compile(" ?(\ue200[^\ue200\ue201]*\ue201)")


def matches(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("mapping"), dict)


def read(item: Mapping[str, Any], reading: ReadContext) -> SourceConversation:
    nodes = [
        _node(str(node_id), node, reading)
        for node_id, node in item["mapping"].items()
        if isinstance(node, dict)
    ]
    return SourceConversation(
        id=string(item.get("conversation_id")) or string(item.get("id")),
        title=title_of(item.get("title")),
        messages=nodes,
        shown=string(item.get("current_node")),
        created_at=reading.moment(item.get("create_time")),
        updated_at=reading.moment(item.get("update_time")),
        is_archived=item.get("is_archived") is True,
        is_pinned=item.get("is_starred") is True,
    )


def _node(node_id: str, node: Mapping[str, Any], reading: ReadContext) -> SourceMessage:
    """Return the message of a node, without a role if the node has no message to import."""
    parent, message = string(node.get("parent")) or None, node.get("message")
    if isinstance(message, dict) and (found := _message(node_id, parent, message, reading)):
        return found
    return SourceMessage(node_id, parent)


def _message(
    node_id: str, parent: str | None, message: Mapping[str, Any], reading: ReadContext
) -> SourceMessage | None:
    author, metadata = message.get("author"), message.get("metadata")
    role = author.get("role") if isinstance(author, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    if metadata.get("is_visually_hidden_from_conversation") is True:
        return None
    # Messages to tools are not part of the conversation.
    if role not in ROLES or message.get("recipient", "all") != "all":
        reading.left_out["steps of tools"] += 1
        return None
    content = message.get("content")
    said = _text(content, reading)
    said = _without_marks(said, metadata, reading) if role == "assistant" else said
    lines = [said, *_attached(metadata, content, reading)]
    said_at, model = message.get("create_time"), metadata.get("model_slug")
    return reading.message(node_id, parent, role, lines, said_at, model)


def _text(content: Any, reading: ReadContext) -> str:
    if not isinstance(content, dict):
        return ""
    kind = content.get("content_type")
    if kind == "code":
        return f"```{string(content.get('language')).strip()[:40]}\n{string(content.get('text'))}\n```"
    if kind not in ("text", "multimodal_text"):
        reading.left_out["notes that ChatGPT shows separately, such as its reasoning"] += 1
        return ""
    parts = content.get("parts")
    texts = [_part(part, reading) for part in parts] if isinstance(parts, list) else []
    return "\n".join([text for text in texts if text.strip()])


def _part(part: Any, reading: ReadContext) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    reading.left_out["images and other files"] += 1
    return "[A file that was not imported]"


def _without_marks(text: str, metadata: Mapping[str, Any], reading: ReadContext) -> str:
    """Replace each mark, e.g. a link, with the text that the export gives for it. Remove marks without one."""
    references = objects(metadata.get("content_references"))
    texts = {string(each.get("matched_text")): string(each.get("alt")) for each in references}

    def replace(mark: re.Match[str]) -> str:
        if named := texts.get(mark[1]):
            return mark[0].replace(mark[1], named)
        reading.left_out["citations"] += 1
        return ""

    return _MARK.sub(replace, text)


def _attached(metadata: Mapping[str, Any], content: Any, reading: ReadContext) -> Iterator[str]:
    """Yield a line for each upload without a part in the content: images have a part, documents have none."""
    parts = content.get("parts") if isinstance(content, dict) else None
    # A pointer is a URI that ends with the id of the upload.
    shown = {string(part.get("asset_pointer")).rpartition("/")[2] for part in objects(parts)}
    for file in objects(metadata.get("attachments")):
        if string(file.get("id")) not in shown:
            yield reading.lost_file(file.get("name"))
