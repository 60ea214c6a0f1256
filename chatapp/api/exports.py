"""Taking a conversation away, as JSON or Markdown, streamed page by page however long it is."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Router

from chatapp import clock
from chatapp.api import shapes
from chatapp.api.auth import ApiRequest, allow
from chatapp.database import in_database
from chatapp.models import Branch, Conversation
from chatapp.selectors.access import accessible_conversation
from chatapp.selectors.conversations import shape_conversation
from chatapp.selectors.exports import export_page, exported_compactions

router = Router(tags=["conversations"])

SPEAKERS = {"user": "You", "assistant": "Assistant", "system": "System", "tool": "Tool"}
CONTENT = {"schema": {"type": "string"}}
DESCRIBED = {
    "responses": {
        200: {"content": {"application/json": {"schema": {"type": "object"}}, "text/markdown": CONTENT}}
    }
}


@router.get(
    "/conversations/{conversation_id}/export",
    auth=allow("chat", "read"),
    response=shapes.answers(404, ok=None),
    openapi_extra=DESCRIBED,
)
async def export(
    request: ApiRequest, conversation_id: str, format: Literal["json", "markdown"] = "json"
) -> HttpResponseBase:
    """What the conversation shows, whole: messages, the metadata of their attachments, and (in JSON) its summaries."""
    row = await sync_to_async(accessible_conversation)(request.auth.user, conversation_id)
    shape = await sync_to_async(shape_conversation)(row)
    branch = await sync_to_async(_branch)(row)
    await sync_to_async(close_old_connections)()  # a long download must not hold one
    if format == "json":
        return _download(export_json(shape, branch), shape["title"], "application/json", "json")
    return _download(export_markdown(shape, branch), shape["title"], "text/markdown", "md")


def _branch(row: Conversation) -> Branch:
    assert row.branch is not None
    return row.branch


def _download(
    chunks: AsyncGenerator[str, None], title: str, content_type: str, ending: str
) -> StreamingHttpResponse:
    response = StreamingHttpResponse(chunks, content_type=f"{content_type}; charset=utf-8")
    name = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:60] or "conversation"
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return response


async def _pages(branch: Branch) -> AsyncGenerator[list[dict[str, Any]], None]:
    position: int | None = -1
    while position is not None:
        messages, position = await in_database(export_page)(branch, position)
        yield messages


async def export_json(shape: dict[str, Any], branch: Branch) -> AsyncGenerator[str, None]:
    """One object; `messages` is what the import takes."""
    head = {"format": "palimpsest", "version": 1, "exported_at": clock.now().isoformat(), **shape}
    head["compactions"] = await in_database(exported_compactions)(branch)
    yield json.dumps(head, ensure_ascii=False)[:-1] + ', "messages": ['
    separator = "\n"
    async for messages in _pages(branch):
        if messages:
            yield separator + ",\n".join(json.dumps(message, ensure_ascii=False) for message in messages)
            separator = ",\n"
    yield "\n]}\n"


async def export_markdown(shape: dict[str, Any], branch: Branch) -> AsyncGenerator[str, None]:
    yield f"# {shape['title'] or 'Conversation'}\n"
    async for messages in _pages(branch):
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
