"""Spans of requests and runs for OpenTelemetry. Nothing is imported or measured where its SDK is not installed.

Which spans are sent, and where to, the SDK reads from the environment: `opentelemetry-instrument` sets it up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from agents.libraries import Library

if TYPE_CHECKING:
    from opentelemetry import trace
else:
    trace = Library("opentelemetry.trace")

FLUSH_MS = 2_000


class Span(Protocol):
    def set_attribute(self, key: str, value: str | int) -> None:
        """Say one thing more of it: ids and kinds, and no contents."""


class _NoSpan:
    def set_attribute(self, key: str, value: str | int) -> None:
        pass


is_installed = find_spec("opentelemetry") is not None and find_spec("opentelemetry.sdk") is not None
_no_span = _NoSpan()


@contextmanager
def span(name: str, **attributes: str | int) -> Iterator[Span]:
    """Measure what is done within. Attributes begin with `palimpsest.`."""
    if not is_installed:
        yield _no_span
        return
    named = {f"palimpsest.{key}": value for key, value in attributes.items()}
    tracer = trace.get_tracer("palimpsest")
    # An error's words may hold contents: it is in the log.
    with tracer.start_as_current_span(
        name, attributes=named, record_exception=False, set_status_on_exception=False
    ) as current:
        yield current


def flush() -> None:
    """Send what waits, for some seconds: the process ends without Python's own end."""
    send = getattr(trace.get_tracer_provider(), "force_flush", None) if is_installed else None
    if send is not None:
        send(FLUSH_MS)
