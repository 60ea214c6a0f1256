"""The time limit of one answer, not counting the time in which it waits for its user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar

_limit: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)
"""The limit of the answer that this task, or the one that started it, is writing."""


class TimeLimit:
    """`async with limit.running():` raises TimeoutError past the limit; `has_passed` tells it from other timeouts."""

    def __init__(self, seconds: float) -> None:
        self._left_s = seconds
        self._waits = 0
        self._timeout: asyncio.Timeout | None = None

    @property
    def has_passed(self) -> bool:
        return self._timeout is not None and self._timeout.expired()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        token = _limit.set(self)
        try:
            async with asyncio.timeout(self._left_s) as self._timeout:
                yield
        finally:
            _limit.reset(token)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._waits += 1
        if self._waits == 1:
            self._stop_counting()
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0:
                self._count_on()

    def _stop_counting(self) -> None:
        when = self._timeout.when() if self._timeout else None
        # `reschedule` raises RuntimeError on a timeout that has expired.
        if self._timeout is not None and when is not None and not self.has_passed:
            self._left_s = max(0.0, when - asyncio.get_running_loop().time())
            self._timeout.reschedule(None)

    def _count_on(self) -> None:
        if self._timeout is not None and self._timeout.when() is None and not self.has_passed:
            self._timeout.reschedule(asyncio.get_running_loop().time() + self._left_s)


def waiting_for_user() -> AbstractContextManager[None]:
    """Exclude the time inside from the limit of the answer. Several calls may wait at once."""
    limit = _limit.get()
    return limit.paused() if limit else nullcontext()
