"""What the built-in tools see of the world, always with the rights of the user whose run it is."""

from __future__ import annotations

from datetime import datetime

from agents.tools.protocol import ToolCaller, ToolFailure, ToolImage
from chatapp import clock
from chatapp.database import in_database
from chatapp.errors import NotFound
from chatapp.models import Offload
from chatapp.offloads import read_content, read_text
from chatapp.selectors.accounts import time_zone_of
from chatapp.selectors.offloads import offload_of


class UserClock:
    def now(self) -> datetime:
        return clock.now()

    async def time_zone_of(self, caller: ToolCaller) -> str:
        return await in_database(time_zone_of)(caller.user_id)


class OwnOffloads:
    """Of the conversation that asks, which belongs to its user."""

    async def read_text(self, caller: ToolCaller, reference: str) -> str:
        return await in_database(_offloaded_text)(caller, reference)

    async def read_image(self, caller: ToolCaller, reference: str) -> ToolImage:
        return await in_database(_offloaded_image)(caller, reference)


def _offloaded_text(caller: ToolCaller, reference: str) -> str:
    try:
        return read_text(offload_of(caller.conversation_id, reference))
    except NotFound as error:
        raise ToolFailure(error.message) from None


def _offloaded_image(caller: ToolCaller, reference: str) -> ToolImage:
    try:
        row = offload_of(caller.conversation_id, reference)
        if row.kind != Offload.Kind.IMAGE:
            raise ToolFailure("This is no image; read it by pages.")
        return ToolImage(read_content(row), row.mime_type)
    except NotFound as error:
        raise ToolFailure(error.message) from None
