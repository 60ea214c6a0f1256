"""What was offloaded in the conversation that asks, which belongs to its user."""

from __future__ import annotations

from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage
from chatapp.database import persistently
from chatapp.errors import NotFound
from chatapp.models import Offload
from chatapp.offloads import read_content, read_text
from chatapp.selectors.offloads import offload_of


class OwnOffloads:
    async def read_text(self, caller: ToolCaller, reference: str) -> str:
        return await persistently(_text)(caller, reference)

    async def read_image(self, caller: ToolCaller, reference: str) -> ToolImage:
        return await persistently(_image)(caller, reference)


def _text(caller: ToolCaller, reference: str) -> str:
    try:
        return read_text(offload_of(caller.conversation_id, reference))
    except NotFound as error:
        raise ToolFailure(error.message) from None


def _image(caller: ToolCaller, reference: str) -> ToolImage:
    try:
        row = offload_of(caller.conversation_id, reference)
        if row.kind != Offload.Kind.IMAGE:
            raise ToolFailure("This is no image; read it by pages.")
        return ToolImage(read_content(row), row.mime_type)
    except NotFound as error:
        raise ToolFailure(error.message) from None
