"""One timer for many waits: it ends a wait that is too long, and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agents.chat_models.read_deadline import ReadDeadline


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


async def test_a_deadline_that_passed_while_nobody_waited_ends_the_next_wait() -> None:
    with deadline_of(0.01) as deadline:
        await asyncio.sleep(0.03)
        with pytest.raises(TimeoutError):
            await deadline.wait(asyncio.Event().wait())
