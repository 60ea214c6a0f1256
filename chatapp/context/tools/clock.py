"""The time, and where the user lives."""

from __future__ import annotations

from datetime import datetime

from agents.tools.protocol import ToolCaller
from chatapp.accounts.selectors import time_zone_of
from chatapp.operations import clock
from chatapp.operations.database import persistently


class UserClock:
    def now(self) -> datetime:
        return clock.now()

    async def time_zone_of(self, caller: ToolCaller) -> str:
        return await persistently(time_zone_of)(caller.user_id)
