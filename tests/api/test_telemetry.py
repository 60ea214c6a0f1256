"""Spans of requests and answers, where OpenTelemetry's SDK is installed: here a recorder stands for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from opentelemetry import trace

from chatapp.operations import telemetry
from chatapp.operations.http.measured import measure_requests
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send


@dataclass
class Recorded:
    name: str
    attributes: dict[str, Any]

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value


@dataclass
class Recorder:
    """A provider with one tracer, itself."""

    ended: list[Recorded] = field(default_factory=list)

    def get_tracer(self, *_: Any, **__: Any) -> Recorder:
        return self

    @contextmanager
    def start_as_current_span(self, name: str, *, attributes: Any, **_: Any) -> Iterator[Recorded]:
        span = Recorded(name, dict(attributes))
        yield span
        self.ended.append(span)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> list[Recorded]:
    recorder = Recorder()
    monkeypatch.setattr(trace, "get_tracer", recorder.get_tracer)
    monkeypatch.setattr(telemetry, "is_installed", True)
    return recorder.ended


async def test_an_answer_is_a_span_without_contents(
    spans: list[Recorded], alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation_id = await new_conversation(alice_program)
        await send(alice_program, conversation_id)
    [run] = [span for span in spans if span.name == "run"]
    assert run.attributes.pop("palimpsest.run_id")
    assert run.attributes == {
        "palimpsest.conversation_id": conversation_id,
        "palimpsest.model": "Test",
        "palimpsest.status": "complete",
    }


@pytest.mark.parametrize(
    ("path", "kind"), [("/api/v1/me", "api"), ("/s/a-secret", "page"), ("/", "page"), ("*", "page")]
)
async def test_a_request_is_a_span_that_tells_no_address(spans: list[Recorded], path: str, kind: str) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204})

    async def ignore(message: Any) -> None:
        pass

    await measure_requests(application)({"path": path, "method": "GET"}, None, ignore)
    [request] = spans
    assert (request.name, request.attributes["http.response.status_code"]) == (f"GET {kind}", 204)
    assert "a-secret" not in str(request.attributes)
