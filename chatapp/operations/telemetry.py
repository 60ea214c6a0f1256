"""Names the current request and its client, and records OpenTelemetry spans of requests, runs and tasks.

Without the SDK, a process imports and measures nothing. `opentelemetry-instrument` loads it before our code, and it
reads from the environment which spans to send, and where.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from agents.libraries import Library

if TYPE_CHECKING:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation import tracecontext
else:
    context = Library("opentelemetry.context")
    trace = Library("opentelemetry.trace")
    tracecontext = Library("opentelemetry.trace.propagation.tracecontext")

P = ParamSpec("P")
R = TypeVar("R")

FLUSH_MS = 2_000
MAX_CAUSES = 32

REQUEST_ID = "request_id"
"""The name under which structlog's context variables hold the id of the current request or socket."""
client_address: ContextVar[str] = ContextVar("client_address", default="")
"""The client of the current request or socket, for the audit log. Empty in commands and tasks."""


class Span(Protocol):
    def set_attribute(self, key: str, value: str | int) -> None:
        """Add an attribute: only ids and kinds, never content."""


class _NoSpan:
    def set_attribute(self, key: str, value: str | int) -> None:
        pass


_no_span = _NoSpan()


def is_on() -> bool:
    """Return whether the SDK is loaded in this process. If it is only installed, nothing collects spans."""
    return "opentelemetry.sdk.trace" in sys.modules


@contextmanager
def span(name: str, *, caused_by: Iterable[str] = (), **attributes: str | int) -> Iterator[Span]:
    """Record the block as a span, linked to spans named by `cause`. Attribute names begin with `palimpsest.`."""
    if not is_on():
        yield _no_span
        return
    named = {f"palimpsest.{key}": value for key, value in attributes.items()}
    tracer = trace.get_tracer("palimpsest")
    # Do not record errors, whose messages may hold content. The log has them.
    with tracer.start_as_current_span(
        name,
        attributes=named,
        links=[trace.Link(found) for each in caused_by if (found := _span_named(each)).is_valid],
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        yield current


def cause() -> str:
    """Return the name of the current span, for work that it causes elsewhere; empty if there is none.

    The name is the `traceparent` of W3C Trace Context.
    """
    if not is_on():
        return ""
    carrier: dict[str, str] = {}
    tracecontext.TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


def _span_named(name: str) -> trace.SpanContext:
    # Use an empty context, so that an invalid name does not yield the current span.
    found = tracecontext.TraceContextTextMapPropagator().extract({"traceparent": name}, context.Context())
    return trace.get_current_span(found).get_span_context()


def keep_span(call: Callable[P, R]) -> Callable[P, R]:
    """Return the call so that it belongs to the current span when it runs in another thread."""
    if not is_on():
        return call
    here = context.get_current()

    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        token = context.attach(here)
        try:
            return call(*args, **kwargs)
        finally:
            context.detach(token)

    return run


def flush() -> None:
    """Send pending spans within some seconds, because the process ends without Python's shutdown."""
    send = getattr(trace.get_tracer_provider(), "force_flush", None) if is_on() else None
    if send is not None:
        send(FLUSH_MS)
