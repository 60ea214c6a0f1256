"""Spans of requests, runs and tasks for OpenTelemetry. Nothing is imported or measured in a process without its SDK.

Which spans are sent, and where to, the SDK reads from the environment: `opentelemetry-instrument` loads it and sets it
up before anything of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
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


class Span(Protocol):
    def set_attribute(self, key: str, value: str | int) -> None:
        """Say one thing more of it: ids and kinds, and no contents."""


class _NoSpan:
    def set_attribute(self, key: str, value: str | int) -> None:
        pass


_no_span = _NoSpan()


def is_on() -> bool:
    """Return whether the SDK was loaded in this process. Where it is only installed, nobody takes spans."""
    return "opentelemetry.sdk.trace" in sys.modules


@contextmanager
def span(name: str, *, caused_by: Iterable[str] = (), **attributes: str | int) -> Iterator[Span]:
    """Measure what is done within, linked to the spans that `cause` named. Attributes begin with `palimpsest.`."""
    if not is_on():
        yield _no_span
        return
    named = {f"palimpsest.{key}": value for key, value in attributes.items()}
    tracer = trace.get_tracer("palimpsest")
    # An error's words may hold contents: it is in the log.
    with tracer.start_as_current_span(
        name,
        attributes=named,
        links=[trace.Link(found) for each in caused_by if (found := _span_named(each)).is_valid],
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        yield current


def cause() -> str:
    """Return the name of the current span, for what goes on elsewhere because of it; empty where there is none.

    It is the `traceparent` of W3C Trace Context.
    """
    if not is_on():
        return ""
    carrier: dict[str, str] = {}
    tracecontext.TraceContextTextMapPropagator().inject(carrier)
    return carrier.get("traceparent", "")


def _span_named(name: str) -> trace.SpanContext:
    # In an empty context: what cannot be read is no span, and not the current one.
    found = tracecontext.TraceContextTextMapPropagator().extract({"traceparent": name}, context.Context())
    return trace.get_current_span(found).get_span_context()


def keep_span(call: Callable[P, R]) -> Callable[P, R]:
    """Return the call for another thread, where it belongs to the span that is current here."""
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
    """Send what waits, for some seconds: the process ends without Python's own end."""
    send = getattr(trace.get_tracer_provider(), "force_flush", None) if is_on() else None
    if send is not None:
        send(FLUSH_MS)
