"""Limits each transaction of large work, so that nobody waits long for the write lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from chatapp.operations.database.threads import answers_begin, calls_waiting


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one transaction: rows, characters, and the time after which it starts nothing more."""

    rows: int = 500
    chars: int = 200_000
    # A piece may hold the write lock for 50 ms, so what it has begun may take the remaining 30 ms.
    seconds: float = 0.02
    clock: Callable[[], float] = time.perf_counter

    def start(self) -> Spending:
        return Spending(self, self.clock())


@dataclass(slots=True)
class Spending:
    """What one transaction has used of its budget."""

    budget: Budget
    began: float
    rows: int = 0
    chars: int = 0

    def spend(self, rows: int, chars: int = 0) -> None:
        self.rows += rows
        self.chars += chars

    @property
    def rows_left(self) -> int:
        return max(0, self.budget.rows - self.rows)

    @property
    def is_spent(self) -> bool:
        return (
            self.rows >= self.budget.rows
            or self.chars >= self.budget.chars
            or self.budget.clock() - self.began >= self.budget.seconds
        )


PIECE = Budget()
REST_PER_WORK = 2.0
"""The rest after a piece, relative to its duration. SQLite's waiting writers retry every few milliseconds, and without
a rest they would find the lock taken each time."""
REST_ALONE = 0.5
"""The same if nobody else writes: a new writer finds the lock free a third of the time."""
WRITING_FOR_S = 1.0
"""How long another write is likely after a write."""


YIELD_AT_MOST_S = 1.0
YIELD_STEP_S = 0.02
BUSY_SHARE = 0.9
"""Python threads share one core: a process that uses more than this share of it has none to spare."""


def yield_to_answers(seconds: float) -> None:
    """Rest, and continue to rest while answers of this process begin, wait for the database or use all of its core.
    Stop after YIELD_AT_MOST_S more, so that the work continues."""
    deadline = time.monotonic() + seconds + YIELD_AT_MOST_S
    while True:
        began, used = time.monotonic(), _used_by_others()
        time.sleep(seconds)
        is_busy = _used_by_others() - used > BUSY_SHARE * (time.monotonic() - began)
        if not (is_busy or calls_waiting() or answers_begin()) or time.monotonic() >= deadline:
            return
        seconds = YIELD_STEP_S


def _used_by_others() -> float:
    """Return the CPU time that the other threads of this process have used."""
    return time.process_time() - time.thread_time()


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a worker processes pieces, with rests between them."""

    seconds: float
    budget: Budget = PIECE
    clock: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep

    def work(self, step: Callable[[], bool]) -> bool:
        """Repeat `step` until it returns True (done) or the time is over. Return whether it is done."""
        began = self.clock()
        while True:
            step_began = self.clock()
            if step():
                return True
            now = self.clock()
            if now - began >= self.seconds:
                return False
            self.sleep((now - step_began) * REST_PER_WORK)


class OtherWriters:
    """Detects writes of connections other than that of the current thread."""

    def __init__(self) -> None:
        self._version: int | None = None
        self._until = float("-inf")

    def are_there(self, now: float) -> bool:
        """Return whether others wait for the lock, or wrote recently. SQLite counts the commits of other connections,
        in any process. Writers of other databases do not share a lock."""
        if connection.vendor != "sqlite":
            return calls_waiting() > 0
        with connection.cursor() as cursor:
            [version] = cursor.execute("PRAGMA data_version").fetchone()
        if version != self._version and self._version is not None:
            self._until = now + WRITING_FOR_S
        self._version = version
        return now < self._until or calls_waiting() > 0


@dataclass(slots=True)
class PacedTransactions:
    """Consecutive transactions of one job, with rests between them. Time spent between transactions, e.g. to prepare
    the next one, shortens the rest."""

    pace: Pace
    are_others_writing: Callable[[float], bool] = field(default_factory=lambda: OtherWriters().are_there)
    _free_until: float | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait until the rest is over, then run the block, which is one transaction."""
        if connection.in_atomic_block:  # the lock is not released between its parts
            yield
            return
        if self._free_until is not None:
            self.pace.sleep(max(0.0, self._free_until - self.pace.clock()))
        began = self.pace.clock()
        try:
            yield
        finally:
            ended = self.pace.clock()
            rest = REST_PER_WORK if self.are_others_writing(ended) else REST_ALONE
            self._free_until = ended + (ended - began) * rest


IN_REQUEST = Pace(seconds=1.0)
"""For a request. The worker does the remaining work."""
IN_WORKER = Pace(seconds=3.0, sleep=yield_to_answers)
"""For a worker, before it continues with the work of other users."""
UNBOUNDED = Pace(seconds=float("inf"))


AT_ONCE = 50


def delete_some(rows: QuerySet[Any], spending: Spending, at_once: int = AT_ONCE) -> bool:
    """Delete until no rows or no budget is left, in the caller's transaction. Return whether no rows are left.

    Delete at least one batch, so that the work advances on the slowest machine.
    """
    # Delete by key, because Django cannot delete a slice.
    while some := list(rows.values_list("pk", flat=True)[: max(1, min(at_once, spending.rows_left))]):
        rows.model._default_manager.filter(pk__in=some).delete()
        spending.spend(len(some))
        if spending.is_spent:
            return False
    return True


def delete_all(rows: QuerySet[Any]) -> None:
    """Delete all rows, in batches, with rests for other work."""
    UNBOUNDED.work(lambda: delete_some(rows, PIECE.start()))
