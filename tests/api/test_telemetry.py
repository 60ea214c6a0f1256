"""Spans of requests, answers and tasks, which OpenTelemetry's SDK exports to memory here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from celery import shared_task
from celery.worker import WorkController
from django.db import transaction
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from chatapp.operations import telemetry
from chatapp.operations.database.threads import in_database, in_writer
from chatapp.operations.http.request_metrics import measure_requests
from chatapp.operations.workers import jobs
from chatapp.operations.workers.celery_app import app
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send
from tests.servers.waiting import wait_for


class Exported:
    """The spans that one test exported to the exporter shared by all tests of this process."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self.exporter = exporter

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


@pytest.fixture(scope="module")
def exporter() -> Iterator[InMemorySpanExporter]:
    """Patch the provider: a global one cannot be removed, and tests of other modules need tasks without spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace, "get_tracer", provider.get_tracer)
        patch.setattr(trace, "get_tracer_provider", lambda: provider)
        yield exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[Exported]:
    exporter.clear()
    yield Exported(exporter)
    exporter.clear()


def linked(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


def own_id(span: ReadableSpan) -> int:
    return span.get_span_context().span_id


async def test_an_answer_is_a_span_without_contents(
    spans: Exported, alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation_id = await new_conversation(alice_program)
        with telemetry.span("request"):
            await send(alice_program, conversation_id)
    [run] = spans.named("run")
    told = dict(run.attributes)
    assert told.pop("palimpsest.run_id")
    assert told == {
        "palimpsest.conversation_id": conversation_id,
        "palimpsest.model": "Test",
        "palimpsest.status": "complete",
    }
    [request] = spans.named("request")
    assert linked(run) == [own_id(request)]
    assert run.get_span_context().trace_id != request.get_span_context().trace_id


@pytest.mark.parametrize(
    ("path", "kind"), [("/api/v1/me", "api"), ("/s/a-secret", "page"), ("/", "page"), ("*", "page")]
)
async def test_the_span_of_a_request_does_not_contain_its_path(spans: Exported, path: str, kind: str) -> None:
    async def application(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204})

    async def ignore(message: Any) -> None:
        pass

    await measure_requests(application)({"path": path, "method": "GET"}, None, ignore)
    [request] = spans.named(f"GET {kind}")
    assert request.attributes["http.response.status_code"] == 204
    assert "a-secret" not in str(dict(request.attributes))


def test_the_span_of_a_failed_task_has_its_status_but_no_error_message(spans: Exported) -> None:
    with pytest.raises(ZeroDivisionError):
        fail_for_test("secret words")
    [task] = spans.named(f"task {fail_for_test.name}")
    assert dict(task.attributes) == {"palimpsest.task_id": "", "palimpsest.status": "failed"}
    assert not task.events
    assert "secret" not in str(task.to_json())


done: list[Any] = []


@shared_task
def note_for_test(value: Any) -> None:
    done.append((value, threading.current_thread().name))


@shared_task
def wake_for_test(value: str) -> None:
    jobs.wake_worker(note_for_test.name, value)


@shared_task
def fail_for_test(_: str) -> None:
    raise ZeroDivisionError("secret words")


@pytest.fixture(scope="module")
def running_worker() -> Iterator[None]:
    """Run a real worker in a thread. Purge the in-memory broker first: earlier tests leave tasks in it. Stopping takes
    two seconds, so all tests share one worker."""
    app.control.purge()
    running = WorkController(
        app=app,
        pool="threads",
        concurrency=1,
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    working = threading.Thread(target=running.start, daemon=True)
    working.start()
    yield
    running.stop()
    working.join(60)


@pytest.fixture
def worker(running_worker: None) -> None:
    done.clear()


@pytest.mark.django_db(transaction=True)
def test_the_span_of_a_task_is_linked_to_the_request_or_task_that_woke_it(
    spans: Exported, worker: None
) -> None:
    with telemetry.span("request"), transaction.atomic():
        jobs.wake_worker(wake_for_test.name, "a")
    wait_for(lambda: spans.named(f"task {note_for_test.name}"), what="both tasks")
    [request], [first], [second] = (
        spans.named(name) for name in ("request", f"task {wake_for_test.name}", f"task {note_for_test.name}")
    )
    assert linked(first) == [own_id(request)]
    assert linked(second) == [own_id(first)]
    assert first.parent is None
    assert first.attributes["palimpsest.task_id"]
    assert first.attributes["palimpsest.status"] == "complete"


@pytest.mark.django_db(transaction=True)
def test_the_span_of_a_task_for_many_rows_is_linked_to_all_its_causes(spans: Exported, worker: None) -> None:
    for name in ("one", "two"):
        with telemetry.span(name):
            jobs.wake_for_many(note_for_test.name, name)
    jobs.wake_for_many(note_for_test.name, "of nothing")
    wait_for(lambda: done, what="the task")
    [task] = spans.named(f"task {note_for_test.name}")
    assert linked(task) == [own_id(spans.named(name)[0]) for name in ("one", "two")]
    assert done[0][0] == ["one", "two", "of nothing"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("hop", [in_database, in_writer])
async def test_tasks_that_a_database_thread_wakes_are_linked_to_the_request(
    spans: Exported, worker: None, hop: Any
) -> None:
    with telemetry.span("request"):
        await hop(jobs.wake_worker)(note_for_test.name, "a")
    await hop(jobs.wake_worker)(note_for_test.name, "after the request")
    name = f"task {note_for_test.name}"
    await asyncio.to_thread(wait_for, lambda: len(spans.named(name)) == 2, what="both tasks")
    assert [linked(task) for task in spans.named(name)] == [[own_id(spans.named("request")[0])], []]
