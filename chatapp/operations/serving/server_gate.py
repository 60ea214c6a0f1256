"""Holds a writer back while its reader has not taken what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

STUCK_S = 60.0


class Gate:
    """Open until the transport says that its buffer is full. A reader that takes nothing for a minute is dropped."""

    def __init__(self, drop: Callable[[], None]) -> None:
        self._drop = drop
        self._opened: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_closed(self) -> bool:
        return self._opened is not None

    def close(self) -> None:
        if self._opened is None:
            loop = asyncio.get_running_loop()
            self._opened = loop.create_future()
            self._timer = loop.call_later(STUCK_S, self._drop)

    def open(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._opened is not None:
            self._opened.set_result(None)
            self._opened = None

    async def wait(self) -> None:
        if self._opened is not None:
            await asyncio.shield(self._opened)
