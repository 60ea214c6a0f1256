"""The threads in which asynchronous code does its database work."""

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

AWAY = (OperationalError, InterfaceError)
"""Raised when the database cannot be reached or a connection broke. The call may be repeated."""
PATIENCE_S = 30.0
"""A restart, or a switch to the standby, takes less."""
PAUSE_S = 0.5

# Fewer than the connection pool holds, so that page requests find one free. One thread for all, as
# asgiref gives to detached tasks, does a quarter of the writes.
THREADS = 8
MOST_TOGETHER = 32
OTHERS_WAIT_S = 1.0
"""What follows the first word of an answer waits at most so long for answers that have none yet."""
LOOK_EVERY_S = 0.01
BEGINS_FOR_S = 0.1
"""An answer has its first word by then, where nothing else is going on and the model is quick."""
TOGETHER_S = 0.03
"""What is written together holds the write lock no longer than this and one action."""
_threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="database")
_writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="writer")
_long_work = ThreadPoolExecutor(max_workers=1, thread_name_prefix="long-work")


def in_database(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the action or selector as a coroutine function that runs it in a database thread."""
    return _in_thread(_threads, call)


def in_writer(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the action, one of the hot path, as a coroutine function. On SQLite, which has one writer at a time,
    actions that wait are written together: in one transaction, each action in its own part of it, and each is answered
    after the commit.

    PostgreSQL locks rows and gathers commits itself: there each action is a transaction of its own.
    """
    return _in_queue(call, is_urgent=False)


def first_in_writer(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return the action like `in_writer`, but overtaking other actions: for those before the first word of an answer,
    and those to be stored within a second."""
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
    """The actions that wait for the one writer of this process: the urgent ones, and the others."""

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
        # When it has to be written at the latest: by this the queues take turns, so that none waits for ever.
        waiting = _Waiting(call, Future(), is_urgent, now if is_urgent else now + OTHERS_WAIT_S)
        (self._urgent if is_urgent else self._others).append(waiting)
        if is_urgent:
            self.urgent_at = now
            self._urgent_came.set()
        _writer.submit(self._write_some)
        return waiting.answer

    def _write_some(self) -> None:
        """Write what waits, in the writer's thread; nothing where an earlier turn has written it."""
        while len(self) and self._next_queue() is None:
            # The threads tell nobody when their queue is empty: it is looked at again.
            self._urgent_came.wait(LOOK_EVERY_S)
            self._urgent_came.clear()
        some = self._take_some()
        left: Sequence[_Waiting] = ()
        # Alone it needs no savepoint.
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
            # One that was put back is running already, and marking it again would raise.
            if each.answer.running() or each.answer.set_running_or_notify_cancel():
                some.append(each)
        return some

    def _next_queue(self) -> deque[_Waiting] | None:
        """Return the queue whose first action is the next: the urgent ones first, but the others where they are due
        earlier. They are not written before that while answers wait for a thread, which they would slow down: None."""
        if self._urgent and self._others:
            return min(self._urgent, self._others, key=lambda queue: queue[0].due_at)
        if self._urgent:
            return self._urgent
        if self._others and (not _threads._work_queue.qsize() or self._others[0].due_at <= self.clock()):
            return self._others
        return None

    def _put_back(self, left: Sequence[_Waiting]) -> None:
        # From the last to the first, so that they stand in their order again.
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
    """Carry out one action as a transaction of its own."""
    try:
        result = _with_connection(waiting.call)
    except BaseException as error:
        # Whatever it is: its caller would wait for ever.
        waiting.answer.set_exception(error)
    else:
        waiting.answer.set_result(result)


def _write_together(some: Sequence[_Waiting]) -> list[_Waiting]:
    """Carry out actions in one transaction, and return those for which the time was too short. One that fails leaves
    nothing and does not concern the others; where the transaction as a whole fails, each is tried by itself."""
    outcomes: list[Callable[[], None]] = []
    commits: list[bool] = []
    left = deque(some)
    try:
        with transaction.atomic():
            # Registered before all others: where one of those fails, it is known that the actions are stored.
            transaction.on_commit(lambda: commits.append(True))
            began = time.monotonic()
            while left and time.monotonic() - began < TOGETHER_S:
                outcomes.append(_part_of_transaction(left.popleft()))
    except Exception:
        if not commits:
            log.info("What waited could not be written together; each is written by itself.", exc_info=True)
            for waiting in some:
                _settle(waiting)
            return []
        # The actions are stored all the same, and answered below.
        log.exception("What follows a commit failed.")
    for answer in outcomes:
        answer()
    return list(left)


def _part_of_transaction(waiting: _Waiting) -> Callable[[], None]:
    """Carry out an action and return what answers it."""
    try:
        with transaction.atomic():
            result = waiting.call()
    except Exception as error:
        return partial(waiting.answer.set_exception, error)
    return partial(waiting.answer.set_result, result)


def calls_waiting() -> int:
    """Return how many calls of answers and pages wait for a thread or for the writer."""
    return _threads._work_queue.qsize() + len(_together)


def answers_begin(within_s: float = BEGINS_FOR_S) -> bool:
    """Return whether an answer of this process may have begun so short a time ago. Only the writer of SQLite is asked:
    elsewhere background work has a process of its own."""
    return time.monotonic() - _together.urgent_at < within_s


def beside_database(call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Return a call that takes seconds as a coroutine function: such calls run one at a time, in a thread that no
    answer waits for."""
    return _in_thread(_long_work, call)


def _in_thread(threads: ThreadPoolExecutor, call: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    def run(*args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        return asyncio.get_running_loop().run_in_executor(
            threads, keep_span(partial(_with_connection, call, *args, **kwargs))
        )

    return run


def persistently(
    call: Callable[P, R], hop: Callable[[Callable[P, R]], Callable[P, Awaitable[R]]] = in_database
) -> Callable[P, Awaitable[R]]:
    """Return the call as a coroutine function that repeats it while the database is away: for reads, and for writes
    that may run twice (see `Once`).

    A failed write leaves nothing behind; one runs twice only if the answer to its commit was lost. Raise the last error
    after PATIENCE_S.
    """

    async def run(*args: P.args, **kwargs: P.kwargs) -> R:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE_S
        while True:
            try:
                return await hop(call)(*args, **kwargs)
            except AWAY as error:
                if loop.time() >= deadline:
                    raise
                log.warning("The database was away; trying again.", exc_info=error)
            await asyncio.sleep(PAUSE_S)

    return run


class Once(Generic[P]):
    """A write that `persistently` may repeat: from its second call on it first asks whether the call before was
    committed, though its answer was lost. `is_done` gets what the write gets. One for each thing that is written."""

    def __init__(self, write: Callable[P, object], is_done: Callable[P, bool]) -> None:
        self._write, self._is_done, self._was_tried = write, is_done, False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        if self._was_tried and self._is_done(*args, **kwargs):
            return
        # Before the write: its commit may be done though it raises.
        self._was_tried = True
        self._write(*args, **kwargs)


def _with_connection(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    # Django does this around requests alone: a thread of ours would keep a broken connection for ever.
    close_old_connections()
    try:
        return call(*args, **kwargs)
    finally:
        close_old_connections()
