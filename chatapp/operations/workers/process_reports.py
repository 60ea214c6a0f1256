"""Reports of workers and beats: that they are alive, and their metrics.

They report through Redis. In embedded mode they are threads of this process, which checks them directly.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from django.conf import settings
from prometheus_client import REGISTRY

from agents.libraries import Library

if TYPE_CHECKING:
    import redis
else:
    redis = Library("redis")

Kind = Literal["worker", "beat"]
KINDS: tuple[Kind, ...] = ("worker", "beat")
LIVING = "palimpsest:processes:living"
COUNTED = "palimpsest:processes:counted"
TIMEOUT_S = 1.0
KEPT_S = 3600
"""Reports of dead processes are ignored after LEASE_S, and deleted after this time, or after LEASE_S if that is
longer."""

Sample = tuple[str, dict[str, str], float]
Family = tuple[str, str, str, list[Sample]]
"""Name, description and type of a metric, and its samples: name, labels, value."""

threads: dict[Kind, Callable[[], bool]] = {}
"""The threads of this process that run the worker and beat, as functions that return whether they are alive."""


def ended_threads() -> list[Kind]:
    """Return which threads of this process have ended although they should run."""
    return [kind for kind, is_alive in threads.items() if not is_alive()]


def process_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def connect() -> redis.Redis:
    """Return a connection to Redis with a timeout of TIMEOUT_S. The caller must close it."""
    return redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S
    )


def report_alive(kind: Kind) -> None:
    """Report that this process is alive. Raise redis.RedisError."""
    _tell(LIVING, {"kind": kind})


def report_metrics() -> None:
    """Report the metrics of this process. Raise redis.RedisError."""
    _tell(COUNTED, {"families": list(counted_here())})


def _tell(key: str, said: dict[str, Any]) -> None:
    with connect() as client, client.pipeline(transaction=False) as pipeline:
        pipeline.hset(key, process_name(), json.dumps({"at": time.time(), **said}))
        pipeline.expire(key, max(KEPT_S, settings.LEASE_S))
        pipeline.execute()


def withdraw() -> None:
    """Remove the reports of this process, because it ends. Raise redis.RedisError."""
    with connect() as client:
        for key in (LIVING, COUNTED):
            client.hdel(key, process_name())


def living() -> dict[Kind, int]:
    """Return how many workers and beats are alive. Raise redis.RedisError."""
    if settings.EMBEDDED:
        return {kind: int(kind in threads and threads[kind]()) for kind in KINDS}
    kinds = [said["kind"] for _, said in _read(LIVING)]
    return {kind: kinds.count(kind) for kind in KINDS}


def counted_here() -> Iterator[Family]:
    """Yield the metrics of this process."""
    for metric in REGISTRY.collect():
        samples = [(each.name, each.labels, each.value) for each in metric.samples]
        kept = [sample for sample in samples if not sample[0].endswith("_created")]
        yield metric.name, metric.documentation, metric.type, kept


def counted_elsewhere() -> Iterator[tuple[str, list[Family]]]:
    """Yield the name and metrics of each worker process; nothing in embedded mode. Raise redis.RedisError."""
    if not settings.EMBEDDED:
        for process, said in _read(COUNTED):
            yield process, said["families"]


def _read(key: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the reports of the last LEASE_S with the names of their processes. Delete those of dead processes."""
    # Not `monotonic`, which differs between machines.
    now = time.time()
    with connect() as client:
        stored: dict[bytes, bytes] = client.hgetall(key)
        told = [(name.decode(), json.loads(raw)) for name, raw in stored.items()]
        if dead := [name for name, said in told if now - said["at"] > max(KEPT_S, settings.LEASE_S)]:
            client.hdel(key, *dead)
    # A report from the future, by a clock that was set back since, does not show that its process is alive.
    return sorted((name, said) for name, said in told if abs(now - said["at"]) <= settings.LEASE_S)
