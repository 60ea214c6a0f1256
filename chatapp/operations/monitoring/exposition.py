"""The content of `/metrics`: metrics of this process and of the worker processes, and the length of queues."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count, Min
from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

from agents.libraries import Library
from chatapp.operations import clock
from chatapp.operations.monitoring import metrics as metrics
from chatapp.operations.workers.process_reports import (
    Family,
    connect,
    counted_elsewhere,
    counted_here,
    living,
)
from chatapp.runs.models import Run

if TYPE_CHECKING:
    import redis
else:
    redis = Library("redis")

log = logging.getLogger(__name__)


def exposed() -> bytes:
    """Return all metrics in Prometheus' text format, without those that cannot be read now."""
    return generate_latest(_Everything())


class _Everything(Collector):
    def collect(self) -> Iterable[Metric]:
        """Return each metric once. Samples of workers are added to our own, with the label `process`."""
        found: dict[str, Metric] = {}
        for read in (counted_here, _read_runs, _read_tasks, _read_processes):
            for name, text, kind, samples in _readable(read):
                metric = found.setdefault(name, Metric(name, text, kind))
                for sample in samples:
                    metric.add_sample(*sample)
        return found.values()


def _readable(read: Callable[[], Iterator[Family]]) -> list[Family]:
    """Return what `read` yields, or nothing while the database or Redis is unavailable."""
    try:
        return list(read())
    except (DatabaseError, redis.RedisError, OSError):
        log.warning("A part of the metrics could not be read.", exc_info=True)
        return []


def _read_runs() -> Iterator[Family]:
    queued = Run.objects.filter(status=Run.Status.QUEUED).aggregate(
        count=Count("pk"), oldest=Min("created_at")
    )
    age_s = (clock.now() - queued["oldest"]).total_seconds() if queued["oldest"] else 0.0
    yield from _queue("runs", queued["count"], age_s)


def _read_tasks() -> Iterator[Family]:
    """Yield nothing in embedded mode, where tasks wait only for the threads of this process."""
    if settings.EMBEDDED:
        return
    with connect() as client:
        name = settings.CELERY_TASK_DEFAULT_QUEUE
        # Kombu adds tasks on the left, so the last one is the oldest.
        count, oldest = client.llen(name), client.lindex(name, -1)
    sent_at = json.loads(oldest)["headers"].get("sent_at") if oldest else None
    yield from _queue("tasks", count, time.time() - sent_at if sent_at else 0.0)


def _queue(name: str, count: int, age_s: float) -> Iterator[Family]:
    for metric, text, value in (
        ("palimpsest_queue_length", "Items waiting in the queue.", count),
        ("palimpsest_queue_age_seconds", "How long the oldest item has waited.", max(0.0, age_s)),
    ):
        yield metric, text, "gauge", [(metric, {"queue": name}, float(value))]


def _read_processes() -> Iterator[Family]:
    metric = "palimpsest_processes"
    counts: dict[str, int] = dict(living().items())
    samples = [(metric, {"kind": kind}, float(count)) for kind, count in counts.items()]
    yield metric, "Workers and beats that reported within LEASE_S.", "gauge", samples
    for process, families in counted_elsewhere():
        for name, text, kind, told in families:
            yield (
                name,
                text,
                kind,
                [(each, {**labels, "process": process}, value) for each, labels, value in told],
            )
