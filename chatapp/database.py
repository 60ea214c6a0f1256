"""The threads in which asynchronous code does its database work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

# Fewer than the connection pool holds, so that page requests find one free. One thread for all, as
# asgiref gives to detached tasks, does a quarter of the writes.
THREADS = 8
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="database")


def in_database(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """`await in_database(action)(…)`: one action or selector, in one hop to a database thread."""

    def run(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        return asyncio.get_running_loop().run_in_executor(
            _threads, partial(_with_connection, call, *args, **kwargs)
        )

    return run


def _with_connection(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    close_old_connections()
    try:
        return call(*args, **kwargs)
    finally:
        close_old_connections()
