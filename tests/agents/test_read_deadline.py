"""One timer for many waits: it ends a wait that is too long, and nothing else."""

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


async def test_a_wait_within_the_deadline_gives_its_result() -> None:
    with deadline_of(10) as deadline:
        assert await deadline.wait(asyncio.sleep(0, "done")) == "done"


async def test_a_wait_past_the_deadline_is_a_time_out_and_the_task_goes_on() -> None:
    with deadline_of(0.02) as deadline:
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())
    assert await asyncio.sleep(0, "not cancelled") == "not cancelled"


async def test_moving_it_later_saves_the_wait() -> None:
    with deadline_of(0.02) as deadline:
        deadline.move(10)
        assert await deadline.wait(asyncio.sleep(0.05, "done")) == "done"


async def test_moving_it_earlier_shortens_the_wait() -> None:
    with deadline_of(10) as deadline:
        deadline.move(0.02)
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())


async def test_a_cancellation_from_outside_stays_one() -> None:
    with deadline_of(10) as deadline:
        task = asyncio.create_task(deadline.wait(asyncio.Event().wait()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_what_came_while_the_process_stood_still_is_read_first() -> None:
    loop = asyncio.get_running_loop()
    with deadline_of(0.01) as deadline:
        coming = loop.create_future()
        waiting = asyncio.create_task(deadline.wait(coming))
        await asyncio.sleep(0)
        loop.call_later(0.02, coming.set_result, "read")
        time.sleep(LATE_S + 0.1)  # noqa: ASYNC251 - stopped, or a machine that slept
        assert await waiting == "read"
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())


async def test_time_in_which_the_process_stood_still_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that there was no time to send would else count as unanswered, and use up its retry."""
    loop = asyncio.get_running_loop()
    with deadline_of(60) as deadline:
        coming = loop.create_future()
        waiting = asyncio.create_task(deadline.wait(coming))
        await asyncio.sleep(0)
        clock = loop.time
        monkeypatch.setattr(loop, "time", lambda: clock() + 100)  # stopped, and going on
        loop.call_later(LATE_S * 1.5, coming.set_result, "answered")
        assert await waiting == "answered"


async def test_a_deadline_that_passed_while_nobody_waited_ends_the_next_wait() -> None:
    with deadline_of(0.01) as deadline:
        await asyncio.sleep(0.03)
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())
