"""Retries after a broken database connection: reads and idempotent writes are retried, other calls are not."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import pytest
from django.db import OperationalError, connection
from django.db.backends.utils import CursorWrapper

from agents.types import ModelRequest, RequestSent
from chatapp.accounts.models import User
from chatapp.context.models import SentRequest
from chatapp.context.sources import RequestSources
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database, retry_on_outage
from chatapp.providers.actions import record_background_calls
from chatapp.providers.models import Usage
from chatapp.providers.usage import CallUsage
from chatapp.realtime.models import Event
from chatapp.runs import background_work, loops, runner
from chatapp.runs.actions.requests import NewRequest
from chatapp.runs.actions.runs import Lease, claim_run
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run
from chatapp.runs.run_events import RunEvents
from chatapp.runs.runner import process
from chatapp.runs.selectors import GIVE_UP_AFTER, dead_runs
from memory.types import Message, TextPart

pytestmark = pytest.mark.django_db(transaction=True)


class Breaking:
    """A call that reads the number 7 and breaks its connection in the first `times` attempts."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.tries = 0

    def __call__(self) -> int:
        self.tries += 1
        with connection.cursor() as cursor:
            if self.tries <= self.times:
                break_off(cursor)
            cursor.execute("SELECT 7")
            return int(cursor.fetchone()[0])


def break_off(cursor: CursorWrapper) -> None:
    if connection.vendor == "postgresql":
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    else:
        cursor.execute("ATTACH DATABASE '/nowhere/at/all' AS away")


async def test_a_read_whose_connection_breaks_is_retried() -> None:
    breaking = Breaking(2)
    assert await retry_on_outage(breaking)() == 7
    assert breaking.tries == 3


async def test_a_call_that_must_not_run_twice_is_tried_once() -> None:
    breaking = Breaking(1)
    with pytest.raises(OperationalError):
        await in_database(breaking)()
    assert breaking.tries == 1


async def test_errors_other_than_a_broken_connection_are_not_retried() -> None:
    tries = []

    def ask() -> None:
        tries.append(1)
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        await retry_on_outage(ask)()
    assert len(tries) == 1


def losing_its_answer(write: Callable[..., object]) -> Callable[..., None]:
    """Return the write as if the connection broke after its first commit."""
    tries = []

    def run(**given: object) -> None:
        write(**given)
        tries.append(1)
        if len(tries) == 1:
            raise OperationalError("server closed the connection unexpectedly")

    return run


@pytest.fixture
def queued(alice: User) -> UUID:
    conversation = create_conversation(user=alice, now=clock.now())
    sent = send_message(
        user=alice,
        conversation_id=str(conversation.pk),
        new=NewMessage("Hello."),
        model=None,
        now=clock.now(),
    )
    return UUID(sent.run_id)


@pytest.fixture
def lease(queued: UUID) -> Lease:
    lease = claim_run(run_id=queued, holder="here", model_name="test", now=clock.now())
    assert lease is not None
    return lease


async def test_a_run_that_waited_during_a_database_outage_is_not_given_up_afterwards(
    queued: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking, long_ago = Breaking(1), 2 * GIVE_UP_AFTER

    def break_and_read(now: datetime) -> list[tuple[UUID, int]]:
        breaking()
        return dead_runs(now)

    async def status() -> str:
        return (await in_database(Run.objects.get)(pk=queued)).status

    waiting = Run.objects.filter(pk=queued)
    await in_database(waiting.update)(created_at=clock.now() - long_ago)
    monkeypatch.setattr(process, "up_since", time.monotonic() - long_ago.total_seconds())
    # A draining process starts no run, so an adopted run stays queued.
    monkeypatch.setattr(process, "is_draining", True)
    monkeypatch.setattr(runner, "dead_runs", break_and_read)
    with pytest.raises(OperationalError):
        await loops.adopt_and_reap()
    await loops.adopt_and_reap()
    assert (await status(), breaking.tries) == ("queued", 2)

    monkeypatch.setattr(process, "up_since", time.monotonic() - long_ago.total_seconds())
    await loops.adopt_and_reap()
    assert await status() == "interrupted", "it was there for all that time, and nobody took it"


async def test_writes_whose_commit_response_was_lost_are_stored_once(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("record_facts", "record_first_request", "store_request"):
        monkeypatch.setattr(background_work, name, losing_its_answer(getattr(background_work, name)))
    run = await in_database(Run.objects.get)(pk=lease.run_id)
    facts = RunEvents(str(run.conversation_id), str(run.pk))
    beside = background_work.BackgroundWork(lease)
    await beside.record_first_request(request(1), [facts.notice("budget", "Most of it is used.")], ())
    beside.tell(facts.notice("truncated", "Something was cut."))
    await background_work.store_in_background(lease, request(2))
    await beside.settle()

    told = Event.objects.filter(run=run, type="run.notice").order_by("seq")
    kinds = [event.payload["kind"] for event in await in_database(list[Event])(told)]
    assert kinds == ["budget", "truncated"]
    assert await in_database(SentRequest.objects.filter(run=run).count)() == 2


def request(n: int) -> NewRequest:
    asked = (Message("system", (TextPart("Answer."),), 1),)
    sent = RequestSent(ModelRequest(asked, 100), body={}, content=b"{}")
    return NewRequest(n, "chat", "test", sent, stored=[], sources=RequestSources(), tokens=10)


def test_a_call_outside_a_run_is_counted_once_however_often_it_is_stored(alice: User) -> None:
    spent = CallUsage(None, "embedding", 10, 0)
    for _ in range(2):
        record_background_calls(alice, None, [spent])
    assert Usage.objects.count() == 1
