"""Prometheus metrics of this process, counted from the events that it commits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from chatapp.context.recalled import RECALL_FAILED
from chatapp.realtime.event_log import facts_committed
from chatapp.realtime.hub import hub
from chatapp.recall import embedding
from chatapp.runs import runner

# Bounded, because the start of a run that ends in another process is never removed.
MAX_REMEMBERED_STARTS = 10_000

runs_finished = Counter("palimpsest_runs", "Runs that ended.", ["status"])
messages_created = Counter("palimpsest_messages", "Messages that users sent.")
tokens_used = Counter("palimpsest_tokens", "Tokens of model calls.", ["purpose", "kind"])
compactions = Counter("palimpsest_compactions", "Compactions by state.", ["state"])
run_seconds = Histogram(
    "palimpsest_run_seconds",
    "From the start of a run to its end.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640),
)
recall_failures = Counter(
    "palimpsest_recall_failures", "Answers that went on without recall because it failed."
)
active_runs = Gauge("palimpsest_active_runs", "Runs that this process is answering.")
active_runs.set_function(runner.active_count)
active_streams = Gauge("palimpsest_sse_streams", "Streams of server-sent events open in this process.")
active_readers = Gauge("palimpsest_readers", "Subscriptions of sockets and streams in this process.")
active_readers.set_function(lambda: hub.reader_count)
embeddings_resting = Gauge(
    "palimpsest_embeddings_resting",
    "1 while the embeddings endpoint fails and this process searches by words only.",
)
embeddings_resting.set_function(embedding.is_resting)

_starts: OrderedDict[str, datetime] = OrderedDict()


def count_facts(sender: Any, *, payloads: list[dict[str, Any]], **_: Any) -> None:
    """Count committed events."""
    for payload in payloads:
        count = _COUNTED.get(payload["type"])
        if count is not None:
            count(payload)


facts_committed.connect(count_facts, dispatch_uid="metrics.count_facts")


def _count_start(payload: Mapping[str, Any]) -> None:
    _starts[payload["run_id"]] = datetime.fromisoformat(payload["at"])
    if len(_starts) > MAX_REMEMBERED_STARTS:
        _starts.popitem(last=False)


def _count_end(payload: Mapping[str, Any]) -> None:
    runs_finished.labels(payload["status"]).inc()
    started_at = _starts.pop(payload.get("run_id", ""), None)
    if started_at is not None:
        run_seconds.observe((datetime.fromisoformat(payload["at"]) - started_at).total_seconds())


def _count_notice(payload: Mapping[str, Any]) -> None:
    if payload["kind"] == RECALL_FAILED:
        recall_failures.inc()


def _count_usage(payload: Mapping[str, Any]) -> None:
    for kind in ("input", "output", "cached"):
        tokens_used.labels(payload["purpose"], kind).inc(payload[f"{kind}_tokens"])


_COUNTED: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "message.created": lambda _: messages_created.inc(),
    "run.started": _count_start,
    "run.finished": _count_end,
    "run.notice": _count_notice,
    "usage": _count_usage,
    "compact": lambda payload: compactions.labels(payload["state"]).inc(),
}
