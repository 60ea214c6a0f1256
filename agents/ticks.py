"""One timer for all answers of an event loop, so that frequent work is done together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from weakref import WeakKeyDictionary

IDLE_INTERVAL_S = 0.04
MAX_INTERVAL_S = 0.4


class Ticks:
    """Ticks every 40 ms while something waits, less often if the loop is busy."""

    def __init__(self) -> None:
        self.interval_s = IDLE_INTERVAL_S
        self._calls: list[Callable[[], None]] = []
        self._readers: list[asyncio.Future[None]] = []
        self._is_scheduled = False
        self._due_at = 0.0

    def call_at_next(self, call: Callable[[], None]) -> None:
        """Call a function once, at the next tick."""
        self._calls.append(call)
        self._schedule()

    async def wait(self) -> None:
        """Wait for the next tick."""
        ticked = asyncio.get_running_loop().create_future()
        self._readers.append(ticked)
        self._schedule()
        await ticked

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._due_at = time.monotonic() + self.interval_s
            asyncio.get_running_loop().call_later(self.interval_s, self._tick)

    def _tick(self) -> None:
        began = time.monotonic()
        self._is_scheduled = False
        # Empty the lists first, because a callback may schedule the next tick.
        calls, self._calls = self._calls, []
        readers, self._readers = self._readers, []
        for ticked in readers:
            if not ticked.done():  # a waiter may have been cancelled
                ticked.set_result(None)
        for call in calls:
            call()
        self._adapt(lag_s=began - self._due_at, cost_s=time.monotonic() - began)

    def _adapt(self, lag_s: float, cost_s: float) -> None:
        """Set the interval by how late and how long this tick was: a busy loop gets fewer ticks with more work each."""
        wanted = IDLE_INTERVAL_S + 4 * max(lag_s, 0.0) + 6 * cost_s
        smoothed = self.interval_s + 0.3 * (wanted - self.interval_s)
        self.interval_s = min(max(smoothed, IDLE_INTERVAL_S), MAX_INTERVAL_S)


# Weak, so that the timer of a loop that has ended is freed.
_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Ticks] = WeakKeyDictionary()


def ticks() -> Ticks:
    """Return the timer of the running loop."""
    loop = asyncio.get_running_loop()
    found = _by_loop.get(loop)
    if found is None:
        found = _by_loop[loop] = Ticks()
    return found
