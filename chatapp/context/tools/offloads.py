"""What was offloaded in the conversation that asks, which belongs to its user."""

from __future__ import annotations

import sys

from agents.tools.offloaded import CONTEXT_REFERENCE, LIST_REFERENCE
from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage
from chatapp.files.models import Offload
from chatapp.files.offloads import offloader, read_content
from chatapp.files.selectors import offload_of, offloads_of
from chatapp.operations.database import persistently
from chatapp.operations.errors import NotFound


class OwnOffloads:
    async def read_text(self, caller: ToolCaller, reference: str) -> str:
        return await persistently(_text)(caller, reference)

    async def read_image(self, caller: ToolCaller, reference: str) -> ToolImage:
        return await persistently(_image)(caller, reference)


def _text(caller: ToolCaller, reference: str) -> str:
    if reference == LIST_REFERENCE:
        return (
            "\n".join(_line(row) for row in offloads_of(caller.conversation_id))
            or "Nothing was offloaded here."
        )
    try:
        return offloader().read(caller.conversation_id, reference, limit=sys.maxsize)
    except NotFound as error:
        raise ToolFailure(error.message) from None


def _line(row: Offload) -> str:
    reference = CONTEXT_REFERENCE if row.kind == Offload.Kind.CONTEXT else row.pk
    return (
        f"{reference}  {row.tool_name or row.name}  {row.size_bytes:,} bytes  {row.created_at:%Y-%m-%d %H:%M}"
    )


def _image(caller: ToolCaller, reference: str) -> ToolImage:
    try:
        row = offload_of(caller.conversation_id, reference)
        if row.kind != Offload.Kind.IMAGE:
            raise ToolFailure("This is no image; read it by pages.")
        return ToolImage(read_content(row), row.mime_type)
    except NotFound as error:
        raise ToolFailure(error.message) from None
