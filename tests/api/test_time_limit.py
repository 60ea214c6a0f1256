"""The time limit of an answer counts the time of the model and its tools, not that of the user's decisions."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.runs.time_limit import TimeLimit, waiting_for_user


async def test_waiting_for_the_user_does_not_count() -> None:
    limit = TimeLimit(0.05)

    async def wait() -> None:
        with waiting_for_user():
            await asyncio.sleep(0.1)

    async with limit.running():
        await asyncio.gather(wait(), wait())  # two calls of one step
        assert not limit.has_passed
    assert not limit.has_passed


async def test_time_after_the_wait_counts_again() -> None:
    limit = TimeLimit(0.05)

    async def wait_and_work() -> None:
        async with limit.running():
            with waiting_for_user():
                await asyncio.sleep(0.1)
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await wait_and_work()
    assert limit.has_passed


async def test_waiting_for_the_user_works_without_a_limit() -> None:
    async with TimeLimit(60).running():
        pass
    with (
        pytest.raises(LookupError),
        waiting_for_user(),
    ):  # only the error of the block, and none about the old limit
        raise LookupError
