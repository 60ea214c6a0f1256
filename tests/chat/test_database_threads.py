"""Database threads: long work does not block answers, and writes that begin an answer overtake later ones."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from django.db import connection, connections

from chatapp.accounts.models import User
from chatapp.operations.database.threads import (
    OTHERS_WAIT_S,
    THREADS,
    TOGETHER_S,
    _together,
    answers_begin,
    first_in_writer,
    in_database,
    in_long_work_thread,
    in_writer,
)
from tests.context_engine.chatting import on_a_loop
from tests.servers.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


async def test_long_work_does_not_block_other_calls() -> None:
    is_done = threading.Event()
    long_work = [asyncio.ensure_future(in_long_work_thread(is_done.wait)(60)) for _ in range(THREADS)]
    try:
        assert await asyncio.wait_for(in_database(User.objects.count)(), 30) == 0
    finally:
        is_done.set()
        assert all(await asyncio.gather(*long_work))


@asynccontextmanager
async def busy_writer() -> AsyncIterator[list[str]]:
    """Block the writer thread inside the context. Yield a list of the transactions that begin afterwards."""
    has_begun, may_go_on = threading.Event(), threading.Event()
    begun: list[str] = []

    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("BEGIN"):
            begun.append(sql)
        return execute(sql, params, many, context)

    def hold() -> None:
        connections[connection.alias].execute_wrappers.append(note)
        has_begun.set()
        may_go_on.wait(60)

    def forget() -> None:
        connections[connection.alias].execute_wrappers.remove(note)

    holding = asyncio.ensure_future(in_writer(hold)())
    assert await asyncio.to_thread(has_begun.wait, 30)
    try:
        yield begun
    finally:
        forgetting = in_writer(forget)()
        may_go_on.set()
        await holding
        await forgetting


@pytest.mark.sqlite
@on_a_loop
async def test_writes_that_begin_an_answer_overtake_writes_that_waited_under_a_second() -> None:
    written: list[str] = []
    async with busy_writer():
        others = [in_writer(written.append)(f"end {number}") for number in range(2)]
        begins = [first_in_writer(written.append)(f"begin {number}") for number in range(5)]
    await asyncio.gather(*others, *begins)
    assert written == [*(f"begin {number}" for number in range(5)), "end 0", "end 1"]


@pytest.mark.sqlite
@on_a_loop
async def test_writes_that_waited_a_second_are_not_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(_together, "clock", lambda: now)
    written: list[str] = []
    async with busy_writer():
        waiting = [in_writer(written.append)("end"), first_in_writer(written.append)("begin 0")]
        now = OTHERS_WAIT_S + 0.1
        waiting.append(first_in_writer(written.append)("begin 1"))
    await asyncio.gather(*waiting)
    assert written == ["begin 0", "end", "begin 1"]


@pytest.mark.sqlite
@on_a_loop
async def test_while_answers_wait_for_a_thread_only_urgent_and_due_writes_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(_together, "clock", lambda: now)
    may_go_on = threading.Event()
    answers = [asyncio.ensure_future(in_database(may_go_on.wait)(60)) for _ in range(THREADS + 1)]
    try:
        other = asyncio.ensure_future(in_writer(User.objects.count)())
        assert await first_in_writer(User.objects.count)() == 0
        assert not other.done()
        now = OTHERS_WAIT_S + 0.1
        assert await asyncio.wait_for(other, 30) == 0
    finally:
        may_go_on.set()
        await asyncio.gather(*answers)


@pytest.mark.sqlite
@on_a_loop
async def test_writes_that_do_not_fit_into_a_batch_are_written_in_the_next_one() -> None:
    def take_long() -> None:
        ends_at = time.monotonic() + TOGETHER_S
        wait_for(lambda: time.monotonic() > ends_at, what="the time of one transaction is over")

    async with busy_writer() as begun:
        waiting = [in_writer(take_long)(), *(in_writer(User.objects.count)() for _ in range(10))]
    assert await asyncio.gather(*waiting) == [None, *[0] * 10]
    assert 2 <= len(begun) < len(waiting)  # a slow machine fits fewer writes into a batch


@pytest.mark.sqlite
@on_a_loop
async def test_an_urgent_write_counts_as_the_possible_beginning_of_an_answer() -> None:
    assert await first_in_writer(User.objects.count)() == 0
    assert answers_begin(within_s=600.0)
    assert not answers_begin(within_s=0.0)


@pytest.mark.sqlite
@on_a_loop
async def test_failed_and_cancelled_writes_do_not_affect_the_rest_of_their_batch() -> None:
    def fail() -> None:
        raise ValueError("This one fails.")

    async with busy_writer():
        failing, given_up = first_in_writer(fail)(), asyncio.ensure_future(in_writer(fail)())
        counting = in_writer(User.objects.count)()
        given_up.cancel()
        await asyncio.sleep(0)
    with pytest.raises(ValueError, match="This one fails"):
        await failing
    assert await counting == 0
    assert given_up.cancelled()
