"""Exports one conversation as a streamed download."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from typing import Literal

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from ninja import Router

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.compaction.selectors import exported_compactions
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.export import json_pieces, markdown_pieces
from chatapp.operations.database.threads import in_database
from chatapp.operations.http.schemas import answers

router = Router(tags=["conversations"])

CONTENT = {"schema": {"type": "string"}}
DESCRIBED = {
    "responses": {
        200: {"content": {"application/json": {"schema": {"type": "object"}}, "text/markdown": CONTENT}}
    }
}


@router.get(
    "/conversations/{conversation_id}/export",
    auth=allow("chat", "read"),
    response=answers(404, ok=None),
    openapi_extra=DESCRIBED,
)
async def export(
    request: ApiRequest, conversation_id: str, format: Literal["json", "markdown"] = "json"
) -> HttpResponseBase:
    """Download the whole shown branch: messages, the metadata of their attachments, and (in JSON) its summaries and the
    other versions of its messages."""
    row = await sync_to_async(accessible_conversation)(request.auth.user, conversation_id)
    await sync_to_async(close_old_connections)()  # a long download must not hold a connection
    if format == "json":
        return _download(json_pieces(row, exported_compactions), row.title, "application/json", "json")
    return _download(markdown_pieces(row), row.title, "text/markdown", "md")


def _download(pieces: Iterator[str], title: str, content_type: str, ending: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(_streamed(pieces), content_type=f"{content_type}; charset=utf-8")
    # Only ASCII, because other characters in a header need a special encoding.
    name = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:60] or "conversation"
    response["Content-Disposition"] = f'attachment; filename="{name}.{ending}"'
    return response


async def _streamed(pieces: Iterator[str]) -> AsyncGenerator[str, None]:
    # Piece by piece, so that a slow client holds neither a thread nor a connection.
    while (piece := await in_database(_next)(pieces)) is not None:
        yield piece


def _next(pieces: Iterator[str]) -> str | None:
    return next(pieces, None)
