"""Counts tasks, and reports workers and beats, with Celery's signals.

Every process that runs tasks imports this.
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
from chatapp.operations.database.schema_version import NEWER, OLDER, compare_schema
from chatapp.operations.workers.collector import exempt_loaded_code
from chatapp.operations.workers.process_reports import report_alive, report_metrics, withdraw

log = logging.getLogger(__name__)

SWEEP = "chatapp.operations.tasks.sweep"
LOOK_FOR_SCHEMA_EVERY_S = 2.0
BUCKETS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800)

tasks_ended = Counter("palimpsest_tasks", "Tasks that workers finished.", ["task", "state"])
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
    """Wait until the database has the schema of this worker or beat, as a server may be about to migrate it. End the
    process if its schema is older than the database."""
    if settings.EMBEDDED:
        return  # the server has checked the schema
    try:
        while why := _schema_is_missing():
            log.warning("%s This process waits for it.", why)
            time.sleep(LOOK_FOR_SCHEMA_EVERY_S)
    finally:
        connection.close()
        if connection.vendor == "postgresql":
            # The processes forked for tasks would inherit the pool without its threads.
            connection.close_pool()  # type: ignore[attr-defined]


def _schema_is_missing() -> str:
    """Return why the schema cannot be used yet; empty if it can. Raise SystemExit if it is too new."""
    try:
        schema = compare_schema()
    except DatabaseError as error:
        return f"The schema of the database cannot be compared ({str(error).strip()})."
    if schema == "newer":
        raise SystemExit(NEWER)
    return OLDER if schema == "older" else ""


@signals.worker_ready.connect
def report_worker(**_: Any) -> None:
    """Report the main process of a worker, which gives tasks to others or runs them in its threads."""
    if not settings.EMBEDDED:
        # In embedded mode the server does this for the whole process.
        exempt_loaded_code()
    _report_forever(partial(report_alive, "worker"), report_metrics)


@signals.worker_process_init.connect
def report_pool_process(**_: Any) -> None:
    """Report the metrics of a process that runs tasks for its worker. The worker reports that it is alive."""
    exempt_loaded_code()
    # Start the thread here, not in the worker, because a fork has none of its parent's threads.
    _report_forever(report_metrics)


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
        _try(partial(report_alive, "beat"))


@signals.after_task_publish.connect
def report_beat_that_sent(sender: str | None = None, **_: Any) -> None:
    """Report the sender of a sweep as a living beat. Only beats send sweeps, and one that sends none does no work."""
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
    """Send a report, or log why it failed. A failed report must not fail a task."""
    from redis.exceptions import RedisError

    try:
        tell()
    except (RedisError, OSError) as error:
        log.warning("The report of this process could not be sent to Redis: %s", error)
    except Exception:
        log.exception("The report of this process failed.")
