"""One timer for all answers of an event loop: waiters resume together, and less often if the loop is busy."""

from __future__ import annotations

import asyncio
import time

import pytest

from agents.ticks import IDLE_INTERVAL_S, MAX_INTERVAL_S, Ticks, ticks


async def test_all_waiters_resume_at_the_same_tick_after_the_callbacks() -> None:
    together, order = Ticks(), list[str]()

    async def read(name: str) -> None:
        await together.wait()
        order.append(name)

    together.call_at_next(lambda: order.append("told"))
    async with asyncio.TaskGroup() as group:
        for name in ("first", "second"):
            group.create_task(read(name))
    assert order == ["told", "first", "second"]


async def test_a_cancelled_waiter_does_not_affect_the_others() -> None:
    together = Ticks()
    gone = asyncio.create_task(together.wait())
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await together.wait()


async def test_a_busy_loop_ticks_less_often() -> None:
    together = Ticks()
    for _ in range(4):  # enough to exceed the longest interval if it were not capped
        together.call_at_next(lambda: time.sleep(0.1))
        await together.wait()
    assert IDLE_INTERVAL_S < together.interval_s <= MAX_INTERVAL_S


def test_the_interval_follows_the_cost_and_lag_of_the_ticks() -> None:
    together, intervals = Ticks(), list[float]()
    for lag_s, cost_s in ((0, 0.1), (0.15, 0), (0, 0.1), (0, 0), (0, 0)):
        together._adapt(lag_s, cost_s)
        intervals.append(together.interval_s)
    assert intervals == pytest.approx([0.22, 0.346, MAX_INTERVAL_S, 0.292, 0.2164])


async def test_a_loop_has_one_timer() -> None:
    assert ticks() is ticks()


def test_each_loop_has_its_own_timer() -> None:
    async def find() -> Ticks:
        return ticks()

    assert asyncio.run(find()) is not asyncio.run(find())
