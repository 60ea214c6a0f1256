"""A conversation to take away, as JSON or Markdown, piece by piece: however long it is, a page of it is in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from chatapp import clock
from chatapp.models import Conversation
from chatapp.selectors.branches import hidden_messages, visible_messages
from chatapp.selectors.conversations import shape_conversation
from chatapp.selectors.exports import export_pages, exported_compactions

SPEAKERS = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tool"}


def json_pieces(row: Conversation) -> Iterator[str]:
    """One object. `messages` is what it shows, and what the import takes; `other_versions` are what was edited or
    answered anew since."""
    assert row.branch is not None
    head = {"format": "palimpsest", "version": 1, "exported_at": clock.now().isoformat()}
    head |= shape_conversation(row) | {"compactions": exported_compactions(row.branch)}
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "messages": ['
    yield from _listed(export_pages(visible_messages(row.branch)))
    yield '\n], "other_versions": ['
    yield from _listed(export_pages(hidden_messages(row.branch)))
    yield "\n]}\n"


def _listed(pages: Iterator[list[dict[str, Any]]]) -> Iterator[str]:
    separator = "\n"
    for messages in pages:
        yield separator + ",\n".join(json.dumps(message, ensure_ascii=False) for message in messages)
        separator = ",\n"


def markdown_pieces(row: Conversation) -> Iterator[str]:
    assert row.branch is not None
    yield f"# {row.title or 'Conversation'}\n"
    for messages in export_pages(visible_messages(row.branch)):
        yield "".join(_section(message) for message in messages)


def _section(message: dict[str, Any]) -> str:
    heading = f"\n## {SPEAKERS[message['role']]}, {message['created_at']}\n\n"
    images = [
        f"[image: {file['name']}, {file['width']} × {file['height']}]" for file in message["attachments"]
    ]
    note = "" if message["status"] == "complete" else f"\n\n*({message['status']})*"
    return heading + "\n\n".join([*images, _text(message["content"])]).strip() + note + "\n"


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(part["text"] for part in content if part["type"] == "text")
