"""The time, and where the user lives."""

from __future__ import annotations

from datetime import datetime

from agents.tools.protocol import ToolCaller
from chatapp import clock
from chatapp.database import persistently
from chatapp.selectors.accounts import time_zone_of


class UserClock:
    def now(self) -> datetime:
        return clock.now()

    async def time_zone_of(self, caller: ToolCaller) -> str:
        return await persistently(time_zone_of)(caller.user_id)
