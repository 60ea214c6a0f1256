"""One timer for many waits: a wait past the deadline times out, and nothing else is cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents.chat_models.read_deadline import LATE_S, ReadDeadline


@contextmanager
def deadline_of(seconds: float) -> Iterator[ReadDeadline]:
    deadline = ReadDeadline(seconds)
    try:
        yield deadline
    finally:
        deadline.close()


async def test_a_wait_within_the_deadline_returns_its_result() -> None:
    with deadline_of(10) as deadline:
        assert await deadline.wait(asyncio.sleep(0, "done")) == "done"


async def test_a_wait_past_the_deadline_times_out_and_the_task_continues() -> None:
    with deadline_of(0.02) as deadline:
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())
    assert await asyncio.sleep(0, "not cancelled") == "not cancelled"


async def test_a_deadline_moved_later_lets_the_wait_finish() -> None:
    with deadline_of(0.02) as deadline:
        deadline.move(10)
        assert await deadline.wait(asyncio.sleep(0.05, "done")) == "done"


async def test_a_deadline_moved_earlier_shortens_the_wait() -> None:
    with deadline_of(10) as deadline:
        deadline.move(0.02)
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())


async def test_a_cancellation_from_outside_is_not_a_timeout() -> None:
    with deadline_of(10) as deadline:
        task = asyncio.create_task(deadline.wait(asyncio.Event().wait()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_data_that_arrived_while_the_process_was_blocked_is_read_first() -> None:
    loop = asyncio.get_running_loop()
    with deadline_of(0.01) as deadline:
        coming = loop.create_future()
        waiting = asyncio.create_task(deadline.wait(coming))
        await asyncio.sleep(0)
        loop.call_later(0.02, coming.set_result, "read")
        time.sleep(LATE_S + 0.1)  # noqa: ASYNC251 - block like a stopped process or a sleeping machine
        assert await waiting == "read"
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())


async def test_time_in_which_the_process_was_blocked_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a request that could not be sent in that time would count as unanswered and use up its retry."""
    loop = asyncio.get_running_loop()
    with deadline_of(60) as deadline:
        coming = loop.create_future()
        waiting = asyncio.create_task(deadline.wait(coming))
        await asyncio.sleep(0)
        clock = loop.time
        monkeypatch.setattr(loop, "time", lambda: clock() + 100)  # as after a pause of the process
        loop.call_later(LATE_S * 1.5, coming.set_result, "answered")
        assert await waiting == "answered"


async def test_a_deadline_that_passed_between_waits_ends_the_next_wait() -> None:
    with deadline_of(0.01) as deadline:
        await asyncio.sleep(0.03)
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())
