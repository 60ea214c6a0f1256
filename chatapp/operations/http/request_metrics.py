"""Counts requests, and measures the time until their responses begin."""

from __future__ import annotations

import time
from typing import Any

from prometheus_client import Counter, Histogram
from structlog.contextvars import get_contextvars

from chatapp.operations.telemetry import REQUEST_ID, span

KINDS = {
    "api": "api",
    "v1": "openai",
    "mcp": "mcp",
    "admin": "admin",
    "accounts": "accounts",
    "static": "static",
    "healthz": "health",
    "readyz": "health",
    "metrics": "health",
}
"""The kind of a request by the first segment of its path. Any other is a page."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

requests = Counter("palimpsest_http_requests", "Requests that were answered.", ["kind", "method", "status"])
seconds = Histogram(
    "palimpsest_http_seconds",
    "Time from a request to the start of its response. A stream starts at once; a message sent without a stream is "
    "answered when the answer is complete.",
    ["kind"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)


def measure_requests(application: Any) -> Any:
    """Return the ASGI application so that its responses are counted, each request in a span."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        begun = time.monotonic()
        kind = KINDS.get(scope["path"].lstrip("/").partition("/")[0], "page")
        # Each label value stays in memory, and clients can invent methods without limit.
        method = scope["method"] if scope["method"] in METHODS else "other"

        async def send_counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                requests.labels(kind, method, str(message["status"])).inc()
                seconds.labels(kind).observe(time.monotonic() - begun)
                measured.set_attribute("http.response.status_code", message["status"])
            await send(message)

        with span(f"{method} {kind}", request_id=get_contextvars().get(REQUEST_ID, "")) as measured:
            await application(scope, receive, send_counted)

    return answer
