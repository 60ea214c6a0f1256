"""The threads in which asynchronous code does its database work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

AWAY = (OperationalError, InterfaceError)
"""Raised when the database cannot be reached or a connection broke. The call may be repeated."""
PATIENCE_S = 30.0
"""A restart, or a switch to the standby, takes less."""
PAUSE_S = 0.5

# Fewer than the connection pool holds, so that page requests find one free. One thread for all, as
# asgiref gives to detached tasks, does a quarter of the writes.
THREADS = 8
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="database")
_long_work = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long-work")


def in_database(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the action or selector as a coroutine function that runs it in a database thread."""
    return _in_thread(_threads, call)


def beside_database(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the same for calls that take seconds: they run one at a time, in a thread that no answer waits for."""
    return _in_thread(_long_work, call)


def _in_thread(threads: ThreadPoolExecutor, call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    def run(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        return asyncio.get_running_loop().run_in_executor(
            threads, partial(_with_connection, call, *args, **kwargs)
        )

    return run


def persistently(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the same, repeated while the database is away: for reads, and for writes that may run twice.

    A failed write leaves nothing behind; one runs twice only if the answer to its commit was lost. Raise the last
    error after PATIENCE_S.
    """

    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while True:
            try:
                return await in_database(call)(*args, **kwargs)
            except AWAY as error:
                if loop.time() >= deadline:
                    raise
                log.warning("The database was away; trying again: %s", error)
            await asyncio.sleep(PAUSE_S)

    return run


def _with_connection(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    close_old_connections()
    try:
        return call(*args, **kwargs)
    finally:
        close_old_connections()
