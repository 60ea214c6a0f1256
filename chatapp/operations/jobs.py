"""Wakes workers. The row is the job; a wake-up that gets lost is found by the sweep."""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from functools import partial

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import OperationalError

from chatapp.operations import telemetry

log = logging.getLogger(__name__)

MAX_QUEUED = 1_000
FINISH_S = 3.0
GATHER_S = 1.0
MOST_GATHERED = 500
RETRY_ONCE = {"max_retries": 1, "interval_start": 0.2}


def wake_worker(task_name: str, row_id: str) -> None:
    """Send Celery a task's full name and a row's id once the current transaction is committed; never wait for the
    broker."""
    # Before the commit a worker would look for a row that it cannot see.
    transaction.on_commit(partial(_wake, task_name, row_id, [telemetry.cause()]))


def wake_for_many(task_name: str, row_id: str) -> None:
    """Send a task the ids of all rows that it is woken for within a second, once they are committed."""
    transaction.on_commit(partial(_gatherer.add, task_name, row_id, telemetry.cause()))


def _wake(task_name: str, argument: str | list[str], causes: list[str]) -> None:
    """Send a task, with the spans that it goes back to: as a header, where there are any."""
    headers = {"caused_by": known[: telemetry.MAX_CAUSES]} if (known := [*filter(None, causes)]) else {}
    # A broker in memory does not hang: it needs no thread.
    if settings.EMBEDDED:
        _send(task_name, argument, headers)
    else:
        _messenger.put(task_name, argument, headers)


class _Gatherer:
    """The rows that tasks are to be woken for, in the order they came."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def add(self, task_name: str, row_id: str, cause: str) -> None:
        with self._lock:
            is_first = task_name not in self._rows
            self._rows.setdefault(task_name, {})[row_id] = cause
        # Its timer takes along all that come before it ends.
        if is_first:
            timer = threading.Timer(GATHER_S, self._send, [task_name])
            # A process that ends does not wait for it: the sweep finds the rows.
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
        log.warning("The broker is away (%s); the sweep will find %s %s.", error, task_name, argument)


class _Messenger:
    """A thread that sends to the broker, started when the queue fills and ended when it is empty.

    A broker that hangs holds up this thread only. What does not fit in the queue is found by the sweep.
    """

    def __init__(self) -> None:
        self._queue: deque[tuple[str, str | list[str], dict[str, list[str]]]] = deque(maxlen=MAX_QUEUED)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, task_name: str, argument: str | list[str], headers: dict[str, list[str]]) -> None:
        with self._lock:
            self._queue.append((task_name, argument, headers))
            # The thread object of a parent process is not alive here.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._send_all, name="jobs", daemon=True)
                self._thread.start()

    def _send_all(self) -> None:
        while (item := self._take()) is not None:
            _send(*item)

    def _take(self) -> tuple[str, str | list[str], dict[str, list[str]]] | None:
        with self._lock:
            # Under the lock of `put`: what comes now is taken by this thread, or begins another one.
            if self._queue:
                return self._queue.popleft()
            self._thread = None
            return None

    def finish(self) -> None:
        """Wait some seconds at the end of a command until its messages are sent."""
        thread = self._thread
        if thread is not None:
            thread.join(FINISH_S)


_messenger = _Messenger()
atexit.register(_messenger.finish)
