"""Counts tasks, and lets workers and beats tell of themselves, by Celery's signals.

Every process that runs tasks imports this with them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from celery import signals
from django.conf import settings
from django.db import DatabaseError, connection
from prometheus_client import Counter, Histogram

from chatapp.operations import telemetry
from chatapp.operations.collector import exempt_loaded_code
from chatapp.operations.process_reports import tell_counts, tell_life, withdraw
from chatapp.operations.schema_version import NEWER, OLDER, compare_schema

log = logging.getLogger(__name__)

SWEEP = "chatapp.operations.tasks.sweep"
LOOK_FOR_SCHEMA_EVERY_S = 2.0
BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800)

tasks_ended = Counter("palimpsest_tasks", "Tasks that workers ended.", ["task", "state"])
task_seconds = Histogram("palimpsest_task_seconds", "How long tasks took.", ["task"], buckets=BUCKETS)
task_wait_seconds = Histogram(
    "palimpsest_task_wait_seconds", "From the sending of a task to its start.", buckets=BUCKETS
)

_begun: dict[str, float] = {}
_is_ending = threading.Event()


@signals.task_prerun.connect
def note_start(task_id: str, task: Any, **_: Any) -> None:
    _begun[task_id] = time.monotonic()
    sent_at = getattr(task.request, "sent_at", None)
    if sent_at is not None:
        task_wait_seconds.observe(max(0.0, time.time() - sent_at))


@signals.task_postrun.connect
def count_task(task_id: str, task: Any, state: str | None = None, **_: Any) -> None:
    name = task.name.removeprefix("chatapp.")
    tasks_ended.labels(name, (state or "unknown").lower()).inc()
    begun = _begun.pop(task_id, None)
    if begun is not None:
        task_seconds.labels(name).observe(time.monotonic() - begun)


@signals.worker_init.connect
@signals.beat_init.connect
def wait_for_schema(**_: Any) -> None:
    """Keep a worker from tasks, and a beat from sending them, until the database has the schema it knows: a server may
    be about to migrate it. End one that is older than the database."""
    if settings.EMBEDDED:
        return  # the server has looked
    try:
        while why := _schema_is_missing():
            log.warning("%s This process waits for it.", why)
            time.sleep(LOOK_FOR_SCHEMA_EVERY_S)
    finally:
        connection.close()
        if connection.vendor == "postgresql":
            # Its pool would come into the processes that are forked for the tasks, without its threads.
            connection.close_pool()  # type: ignore[attr-defined]


def _schema_is_missing() -> str:
    """Return why the schema cannot be used yet; empty where it can. Raise SystemExit where it is too new."""
    try:
        schema = compare_schema()
    except DatabaseError as error:
        return f"The schema of the database cannot be compared ({str(error).strip()})."
    if schema == "newer":
        raise SystemExit(NEWER)
    return OLDER if schema == "older" else ""


@signals.worker_ready.connect
def report_worker(**_: Any) -> None:
    """Report the process that gives tasks to others, or runs them in its threads."""
    if not settings.EMBEDDED:
        # Embedded, the server does it, for the whole process.
        exempt_loaded_code()
    _report_forever(partial(tell_life, "worker"), tell_counts)


@signals.worker_process_init.connect
def report_pool_process(**_: Any) -> None:
    """Report a process that runs tasks for its worker, which tells that it lives itself."""
    exempt_loaded_code()
    # Here and not at the start of the worker: no thread lives on in a fork.
    _report_forever(tell_counts)


@signals.worker_process_shutdown.connect
@signals.worker_shutdown.connect
def end_reports(**_: Any) -> None:
    if not settings.EMBEDDED:
        _is_ending.set()
        _try(withdraw)
        telemetry.flush()


@signals.beat_init.connect
@signals.beat_embedded_init.connect
def report_beat(**_: Any) -> None:
    if not settings.EMBEDDED:
        _try(partial(tell_life, "beat"))


@signals.after_task_publish.connect
def report_beat_that_sent(sender: str | None = None, **_: Any) -> None:
    """Report the sender of a sweep as a living beat: only beats send sweeps, and one that sends none does no work."""
    if sender == SWEEP:
        report_beat()


def _report_forever(*reports: Callable[[], None]) -> None:
    if settings.EMBEDDED:
        return

    def report() -> None:
        while not _is_ending.is_set():
            for tell in reports:
                _try(tell)
            _is_ending.wait(settings.HEARTBEAT_S)

    threading.Thread(target=report, name="reports", daemon=True).start()


def _try(tell: Callable[[], None]) -> None:
    """Tell, or log why not: no task fails with the report of its process."""
    from redis.exceptions import RedisError

    try:
        tell()
    except (RedisError, OSError) as error:
        log.warning("Redis did not take the report of this process: %s", error)
    except Exception:
        log.exception("The report of this process failed.")
