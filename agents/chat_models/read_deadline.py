"""Limit many short awaits with one timer per stream; asyncio.timeout would set and cancel one for each token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")
LATE_S = 0.5
"""A timer is this late only if this process was blocked or the machine slept: nothing was sent or read meanwhile."""


class ReadDeadline:
    """A deadline for each `wait`, which can be moved between them. `close` stops the timer.

    If it passes while this process is blocked, it restarts once, because the server was not silent.
    """

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._seconds = seconds
        self._when = self._loop.time() + seconds
        self._waiting: asyncio.Task[object] | None = None
        self._has_expired = False
        self._had_grace = False
        self._timer = self._loop.call_at(self._when, self._check)

    def move(self, seconds: float) -> None:
        """Set the deadline to `seconds` from now. Only an earlier one needs a new timer."""
        when = self._loop.time() + seconds
        if when < self._when:
            self._timer.cancel()
            self._timer = self._loop.call_at(when, self._check)
        self._seconds, self._when = seconds, when
        self._had_grace = False

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Return the result. Raise TimeoutError past the deadline; a cancellation from outside is raised as one."""
        self._waiting = task = asyncio.current_task()
        assert task is not None
        try:
            return await awaitable
        except asyncio.CancelledError as error:
            # If `uncancel` leaves a request, the task was also cancelled from outside.
            if self._has_expired and task.uncancel() == 0:
                raise TimeoutError from error
            raise
        finally:
            self._waiting = None

    def close(self) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        if self._loop.time() - self._timer.when() > LATE_S and not self._had_grace:
            self._had_grace = True
            self._when = self._loop.time() + max(self._seconds, LATE_S)
            self._timer = self._loop.call_at(self._when, self._check)
        elif self._loop.time() < self._when:
            # `move` set a later time meanwhile, for which it sets no timer.
            self._timer = self._loop.call_at(self._when, self._check)
        elif self._waiting is None:
            # Between two reads the reader itself is busy, so check again soon.
            self._timer = self._loop.call_later(0.05, self._check)
        else:
            self._has_expired = True
            self._waiting.cancel()
