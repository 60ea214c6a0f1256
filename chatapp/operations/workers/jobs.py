"""Wakes workers. The row is the job: if a wake-up is lost, the sweep finds the row."""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from functools import partial

from celery import current_app
from django.conf import settings
from django.db import connection, transaction
from kombu.exceptions import OperationalError

from chatapp.operations import telemetry

log = logging.getLogger(__name__)

MAX_QUEUED = 1_000
FINISH_S = 3.0
GATHER_S = 1.0
MOST_GATHERED = 500
RETRY_ONCE = {"max_retries": 1, "interval_start": 0.2}


def wake_worker(task_name: str, row_id: str) -> None:
    """Send the row's id to a task, given by its full name, after the current transaction commits. Never wait for the
    broker."""
    # Before the commit, a worker could not see the row.
    transaction.on_commit(partial(_wake, task_name, row_id, [telemetry.cause()]))


def wake_for_many(task_name: str, row_id: str) -> None:
    """Send a task the ids of all rows for which it is woken within a second, after they are committed."""
    transaction.on_commit(partial(_gatherer.add, task_name, row_id, telemetry.cause()))


def wake_to_truncate() -> None:
    """Truncate SQLite's journal in a worker after the current transaction commits. Do nothing without SQLite."""
    if connection.vendor == "sqlite":
        wake_worker("chatapp.operations.tasks.truncate_journal_of_deleted", "")


def _wake(task_name: str, argument: str | list[str], causes: list[str]) -> None:
    """Send a task. A header names the spans that caused it, if there are any."""
    headers = {"caused_by": known[: telemetry.MAX_CAUSES]} if (known := [*filter(None, causes)]) else {}
    # A broker in memory does not hang, so it needs no thread.
    if settings.EMBEDDED:
        _send(task_name, argument, headers)
    else:
        _messenger.put(task_name, argument, headers)


class _Gatherer:
    """The rows for which tasks will be woken, in the order of their arrival."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def add(self, task_name: str, row_id: str, cause: str) -> None:
        with self._lock:
            is_first = task_name not in self._rows
            self._rows.setdefault(task_name, {})[row_id] = cause
        # The timer of the first row also sends the rows that follow before it ends.
        if is_first:
            timer = threading.Timer(GATHER_S, self._send, [task_name])
            # A process that ends does not wait for the timer: the sweep finds the rows.
            timer.daemon = True
            timer.start()

    def _send(self, task_name: str) -> None:
        with self._lock:
            causes = self._rows.pop(task_name)
        row_ids = list(causes)
        for start in range(0, len(row_ids), MOST_GATHERED):
            some = row_ids[start : start + MOST_GATHERED]
            _wake(task_name, some, list(dict.fromkeys(causes[each] for each in some)))


_gatherer = _Gatherer()


def _send(task_name: str, argument: str | list[str], headers: dict[str, list[str]]) -> None:
    try:
        current_app.send_task(
            task_name, args=[argument], headers=headers, retry=True, retry_policy=RETRY_ONCE
        )
    except (OperationalError, OSError) as error:
        log.warning("The broker is unavailable (%s); the sweep will find %s %s.", error, task_name, argument)


class _Messenger:
    """A thread that sends tasks to the broker. It starts with the first task and ends when the queue is empty.

    A broker that hangs blocks only this thread. The sweep finds the rows of tasks that do not fit in the queue.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[str, str | list[str], dict[str, list[str]]]] = deque(maxlen=MAX_QUEUED)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, task_name: str, argument: str | list[str], headers: dict[str, list[str]]) -> None:
        with self._lock:
            self._queue.append((task_name, argument, headers))
            # In a fork, the thread of the parent process is not alive.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._send_all, name="jobs", daemon=True)
                self._thread.start()

    def _send_all(self) -> None:
        while (item := self._take()) is not None:
            _send(*item)

    def _take(self) -> tuple[str, str | list[str], dict[str, list[str]]] | None:
        with self._lock:
            # Use the lock of `put`, so that a new task is taken by this thread or starts another one.
            if self._queue:
                return self._queue.popleft()
            self._thread = None
            return None

    def finish(self) -> None:
        """Wait some seconds at the end of a command until its tasks are sent."""
        thread = self._thread
        if thread is not None:
            thread.join(FINISH_S)


_messenger = _Messenger()
atexit.register(_messenger.finish)
