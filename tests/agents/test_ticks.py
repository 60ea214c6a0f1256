"""One timer for all answers: who waits goes on together, and less often where the loop is busy."""

from __future__ import annotations

import asyncio
import time

import pytest

from agents.ticks import IDLE_INTERVAL_S, MAX_INTERVAL_S, Ticks, ticks


async def test_all_who_wait_go_on_at_the_same_tick() -> None:
    together, order = Ticks(), list[str]()

    async def read(name: str) -> None:
        await together.wait()
        order.append(name)

    together.call_at_next(lambda: order.append("told"))
    async with asyncio.TaskGroup() as group:
        for name in ("first", "second"):
            group.create_task(read(name))
    assert order == ["told", "first", "second"]


async def test_one_who_gave_up_does_not_concern_the_others() -> None:
    together = Ticks()
    gone = asyncio.create_task(together.wait())
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    await together.wait()


async def test_a_busy_loop_ticks_less_often_and_an_idle_one_as_before() -> None:
    together = Ticks()
    for _ in range(4):  # the last one would be later than the longest interval
        together.call_at_next(lambda: time.sleep(0.1))
        await together.wait()
    busy = together.interval_s
    assert IDLE_INTERVAL_S < busy <= MAX_INTERVAL_S
    while together.interval_s >= busy:  # a test that does not end fails
        await together.wait()


async def test_a_loop_has_one() -> None:
    assert ticks() is ticks()


def test_each_loop_has_its_own() -> None:
    async def find() -> Ticks:
        return ticks()

    assert asyncio.run(find()) is not asyncio.run(find())
