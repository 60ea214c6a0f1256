"""Runs long work on a separate event loop, so that the server's loop stays free."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
THREADS = 16
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="separate-loop")


async def run_in_separate_loop(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine in a thread with its own event loop and return its result. Cancelling this cancels it."""
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def work() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await make()

    def run() -> T:
        return asyncio.run(work())

    try:
        return await asyncio.get_running_loop().run_in_executor(_threads, run)
    except asyncio.CancelledError:
        if started.done():
            loop, task = started.result()
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                # Tasks are not thread-safe, and `cancel` alone does not wake a sleeping loop.
                loop.call_soon_threadsafe(task.cancel)
        raise
