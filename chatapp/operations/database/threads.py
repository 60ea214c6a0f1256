"""The threads that run database work for asynchronous code."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Generic, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, close_old_connections, connection, transaction

from chatapp.operations.telemetry import keep_span

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger(__name__)

OUTAGE_ERRORS = (OperationalError, InterfaceError)
"""Raised when the database cannot be reached or a connection broke. The call may be repeated."""
PATIENCE_S = 30.0
"""Longer than a restart of the database or a switch to the standby takes."""
PAUSE_S = 0.5

# Fewer than the connections of the pool, so that page requests find a free one. A single thread, which asgiref uses for
# detached tasks, would do a quarter of the writes.
THREADS = 8
MOST_TOGETHER = 32
OTHERS_WAIT_S = 1.0
"""After its first word, an answer's writes wait at most this long for answers that have no first word yet."""
LOOK_EVERY_S = 0.01
BEGINS_FOR_S = 0.1
"""By then an answer has its first word, if nothing else is running and the model is fast."""
TOGETHER_S = 0.03
"""A batch holds the write lock for at most this time plus one action."""
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="database")
_writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
_long_work = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long-work")


def in_database(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the action or selector as a coroutine function that runs it in a database thread."""
    return _in_thread(_threads, call)


def in_writer(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return a hot-path action as a coroutine function. SQLite has one writer at a time, so waiting actions are written
    as a batch: one transaction with a savepoint for each. Callers get their results after the commit.

    PostgreSQL locks rows and groups commits itself, so there each action is its own transaction.
    """
    return _in_queue(call, is_urgent=False)


def first_in_writer(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the action like `in_writer`, but ahead of other actions. Use it for writes before the first word of an
    answer, and for those that must be stored within a second."""
    return _in_queue(call, is_urgent=True)


def _in_queue(call: Callable[P, R], *, is_urgent: bool) -> Callable[P, Awaitable[R]]:
    if not _has_one_writer():
        return in_database(call)

    def run(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        kept = keep_span(partial(call, *args, **kwargs))
        return asyncio.wrap_future(_together.put(kept, is_urgent))

    return run


@cache
def _has_one_writer() -> bool:
    return connection.vendor == "sqlite"


class _Together:
    """The urgent and the other actions that wait for the only writer of this process."""

    def __init__(self) -> None:
        self._urgent: deque[_Waiting] = deque()
        self._others: deque[_Waiting] = deque()
        self._urgent_came = threading.Event()
        self.urgent_at = float("-inf")
        self.clock = time.monotonic

    def __len__(self) -> int:
        return len(self._urgent) + len(self._others)

    def put(self, call: Callable[[], Any], is_urgent: bool) -> Future[Any]:
        now = self.clock()
        # The time by which to write it. The earlier one goes first, so that neither queue starves.
        waiting = _Waiting(call, Future(), is_urgent, now if is_urgent else now + OTHERS_WAIT_S)
        (self._urgent if is_urgent else self._others).append(waiting)
        if is_urgent:
            self.urgent_at = now
            self._urgent_came.set()
        _writer.submit(self._write_some)
        return waiting.answer

    def _write_some(self) -> None:
        """Write waiting actions, in the writer's thread. Do nothing if an earlier call has written them."""
        while len(self) and self._next_queue() is None:
            # Poll, because the thread pool does not signal that its queue is empty.
            self._urgent_came.wait(LOOK_EVERY_S)
            self._urgent_came.clear()
        some = self._take_some()
        left: Sequence[_Waiting] = ()
        # A single action needs no savepoint.
        if len(some) == 1:
            _settle(some[0])
        elif some:
            left = _with_connection(_write_together, some)
        if left:
            self._put_back(left)
            _writer.submit(self._write_some)

    def _take_some(self) -> list[_Waiting]:
        some: list[_Waiting] = []
        while len(some) < MOST_TOGETHER and (queue := self._next_queue()) is not None:
            each = queue.popleft()
            # An action that was put back is already marked as running, and marking it again would raise.
            if each.answer.running() or each.answer.set_running_or_notify_cancel():
                some.append(each)
        return some

    def _next_queue(self) -> deque[_Waiting] | None:
        """Return the queue whose first action is due earlier; None if there is nothing to write yet. While calls wait
        for a database thread, which writing would slow down, actions that are not urgent wait until they are due."""
        if self._urgent and self._others:
            return min(self._urgent, self._others, key=lambda queue: queue[0].due_at)
        if self._urgent:
            return self._urgent
        if self._others and (not _threads._work_queue.qsize() or self._others[0].due_at <= self.clock()):
            return self._others
        return None

    def _put_back(self, left: Sequence[_Waiting]) -> None:
        # Last one first, to restore the original order.
        for each in reversed(left):
            (self._urgent if each.is_urgent else self._others).appendleft(each)


@dataclass(slots=True)
class _Waiting:
    call: Callable[[], Any]
    answer: Future[Any]
    is_urgent: bool
    due_at: float


_together = _Together()


def _settle(waiting: _Waiting) -> None:
    """Run one action by itself, and set its result."""
    try:
        result = _with_connection(waiting.call)
    except BaseException as error:
        # Catch everything, or the caller would wait forever.
        waiting.answer.set_exception(error)
    else:
        waiting.answer.set_result(result)


def _write_together(some: Sequence[_Waiting]) -> list[_Waiting]:
    """Run actions in one transaction, and return those left when the time is over. An action that fails is rolled back
    without affecting the others. If the whole transaction fails, run each action by itself."""
    outcomes: list[Callable[[], None]] = []
    commits: list[bool] = []
    left = deque(some)
    try:
        with transaction.atomic():
            # Register this first: if a later callback fails, it shows that the actions were committed.
            transaction.on_commit(lambda: commits.append(True))
            began = time.monotonic()
            while left and time.monotonic() - began < TOGETHER_S:
                outcomes.append(_part_of_transaction(left.popleft()))
    except Exception:
        if not commits:
            log.info("A batch of writes failed; retrying each one separately.", exc_info=True)
            for waiting in some:
                _settle(waiting)
            return []
        # The actions are committed nevertheless, and their results are set below.
        log.exception("An on-commit callback failed.")
    for answer in outcomes:
        answer()
    return list(left)


def _part_of_transaction(waiting: _Waiting) -> Callable[[], None]:
    """Run an action in a savepoint, and return a function that sets its result."""
    try:
        with transaction.atomic():
            result = waiting.call()
    except Exception as error:
        return partial(waiting.answer.set_exception, error)
    return partial(waiting.answer.set_result, result)


def calls_waiting() -> int:
    """Return how many calls wait for a database thread or for the writer."""
    return _threads._work_queue.qsize() + len(_together)


def answers_begin(within_s: float = BEGINS_FOR_S) -> bool:
    """Return whether an answer of this process may have begun within this time. Always return False on PostgreSQL,
    where no writer records it."""
    return time.monotonic() - _together.urgent_at < within_s


def in_long_work_thread(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return a call that takes seconds as a coroutine function. Such calls run one at a time, in a thread that no
    answer waits for."""
    return _in_thread(_long_work, call)


def _in_thread(threads: ThreadPoolExecutor, call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    def run(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        return asyncio.get_running_loop().run_in_executor(
            threads, keep_span(partial(_with_connection, call, *args, **kwargs))
        )

    return run


def retry_on_outage(
    call: Callable[P, R], hop: Callable[[Callable[P, R]], Callable[P, Awaitable[R]]] = in_database
) -> Callable[P, Awaitable[R]]:
    """Return the call as a coroutine function that retries while the database is unavailable.

    Use it for reads, and for writes that may run twice (see `Once`). A failed write is rolled back, so it runs twice
    only if the response to its commit was lost. Raise the last error after PATIENCE_S.
    """

    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while True:
            try:
                return await hop(call)(*args, **kwargs)
            except OUTAGE_ERRORS as error:
                if loop.time() >= deadline:
                    raise
                log.warning("The database is unavailable; trying again.", exc_info=error)
            await asyncio.sleep(PAUSE_S)

    return run


class Once(Generic[P]):
    """A write that `retry_on_outage` may retry. A retry first calls `is_done`, with the arguments of the write, in case
    the previous commit succeeded but its response was lost. Create one instance for each write."""

    def __init__(self, write: Callable[P, object], is_done: Callable[P, bool]) -> None:
        self._write, self._is_done, self._was_tried = write, is_done, False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        if self._was_tried and self._is_done(*args, **kwargs):
            return
        # Set this before the write, which may raise although it was committed.
        self._was_tried = True
        self._write(*args, **kwargs)


def _with_connection(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    # Django does this only around requests. Our threads would keep a broken connection forever.
    close_old_connections()
    try:
        return call(*args, **kwargs)
    finally:
        close_old_connections()
