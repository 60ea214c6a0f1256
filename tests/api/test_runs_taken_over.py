"""If a process was away for longer than its lease, the text that it has already shown is kept."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from chatapp.conversations.models import Conversation
from chatapp.operations import clock, tasks
from chatapp.operations.database.threads import in_database
from chatapp.operations.errors import LeaseLost
from chatapp.realtime.event_log import read_after
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.models import SearchDocument
from chatapp.runs import loops, runner
from chatapp.runs.actions.endings import interrupt_run
from chatapp.runs.actions.runs import Lease, extend_expired_lease_once
from chatapp.runs.answering import Session
from chatapp.runs.models import Run
from chatapp.runs.run_context import describe_run
from chatapp.runs.streaming import DeltaPump, LiveAnswer
from tests.api.running import new_conversation, running_service, send, wait_for_end, wait_for_words
from tests.context_engine.talking import settle
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

if TYPE_CHECKING:
    from chatapp.providers.models import ModelConfig
    from tests.api.program import Program

ASYNC = {"Prefer": "respond-async"}
TEXT = "one two three four five six"


def expire(run_id: str) -> tuple[UUID, int]:
    """Expire the lease, as if the database had been away for longer. Return `(run_id, fence)`."""
    run = Run.objects.get(pk=run_id)
    Run.objects.filter(pk=run_id).update(lease_expires_at=clock.now() - timedelta(seconds=1))
    return run.pk, run.fence


def reap(run_id: str) -> None:
    """Take the run over as another process does: give a last term first, then end the run."""
    pk, fence = expire(run_id)
    assert extend_expired_lease_once(run_id=pk, fence=fence, now=clock.now())
    assert not interrupt_run(run_id=pk, fence=fence, now=clock.now(), only_expired=True)
    expire(run_id)
    assert not extend_expired_lease_once(run_id=pk, fence=fence, now=clock.now())
    assert interrupt_run(run_id=pk, fence=fence, now=clock.now(), only_expired=True)


async def begin_answer(program: Program, model_server: ModelServer) -> tuple[str, dict[str, Any]]:
    """Send a message and wait for half of the answer. Return the conversation id and the receipt. `release` sends the
    rest."""
    model_server.script(says(TEXT, hold_after=3))
    conversation_id = await new_conversation(program)
    sent: dict[str, Any] = (await send(program, conversation_id, headers=ASYNC)).json()
    await wait_for_words(model_server)
    return conversation_id, sent


async def test_a_run_whose_lease_came_from_a_clock_that_was_ahead_ends(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is gone, and the clock was set back since then: the lease would end in an hour."""
    async with running_service():
        _, sent = await begin_answer(alice_program, model_server)
        monkeypatch.setattr(runner, "is_answering", lambda _: False)
        run = Run.objects.filter(pk=sent["run_id"])
        for _ in range(2):
            await in_database(run.update)(lease_expires_at=clock.now() + timedelta(hours=1))
            await loops.adopt_and_reap()
        model_server.release()
        assert (await wait_for_end(alice_program, sent["run_id"]))["status"] == "interrupted"


@pytest.mark.mechanism("contract.lease")
async def test_a_process_does_not_end_a_run_that_it_is_answering(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation_id, sent = await begin_answer(alice_program, model_server)
        for _ in range(2):
            await in_database(expire)(sent["run_id"])
            await in_database(tasks.sweep)()
            await loops.adopt_and_reap()
        model_server.release()
        assert (await wait_for_end(alice_program, sent["run_id"]))["status"] == "complete"
        page = (await alice_program.get(f"conversations/{conversation_id}/messages")).json()["items"]
        assert (page[-1]["status"], page[-1]["content"]) == ("complete", TEXT)


async def test_text_shown_after_another_process_ended_the_run_is_kept(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation_id, sent = await begin_answer(alice_program, model_server)
        await in_database(reap)(sent["run_id"])
        await in_database(index_conversation)(UUID(conversation_id))
        model_server.release()
        await settle()
        page = (await alice_program.get(f"conversations/{conversation_id}/messages")).json()["items"]
        assert (page[-1]["status"], page[-1]["content"]) == ("interrupted", TEXT)
        events = await in_database(read_after)(UUID(conversation_id), 0)
        of_run = [event["type"] for event in events if event.get("run_id") == sent["run_id"]]
        assert of_run[-1] == "run.finished"
        assert of_run.count("run.finished") == 1
        last = [event for event in events if event["type"] == "message.completed"][-1]
        assert last["message"]["content"] == TEXT
        indexed = SearchDocument.objects.filter(source_id=page[-1]["id"]).values_list("end", flat=True)
        assert await in_database(list)(indexed) == [len(TEXT)], "what was kept late is found, too"


async def test_late_text_is_refused_if_the_answer_was_continued(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says(TEXT, hold_after=3), says("and on"))
    async with running_service():
        conversation_id = await new_conversation(alice_program)
        sent = (await send(alice_program, conversation_id, headers=ASYNC)).json()
        await wait_for_words(model_server)
        await in_database(reap)(sent["run_id"])
        stored = (await alice_program.get(f"conversations/{conversation_id}/messages")).json()["items"][-1]
        went_on = await alice_program.post(f"runs/{sent['run_id']}/continue")
        assert went_on.status_code == 200, went_on.content
        model_server.release()
        await settle()
        page = (await alice_program.get(f"conversations/{conversation_id}/messages")).json()["items"]
        assert [item["content"] for item in page[1:]] == [stored["content"], "and on"]


async def test_reloading_a_deleted_conversation_raises_lease_lost(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    """A hook compacts at the start of the turn, and meanwhile the user deletes the conversation permanently."""
    model_server.script(says(TEXT, hold_after=1))
    async with running_service():
        conversation_id = await new_conversation(alice_program)
        sent = (await send(alice_program, conversation_id, headers=ASYNC)).json()
        await wait_for_words(model_server)
        prepared = await in_database(describe_run)(UUID(sent["run_id"]))
        lease = Lease(UUID(sent["run_id"]), UUID(sent["answer_id"]), 1)
        session = Session(prepared, LiveAnswer(lease, conversation_id), DeltaPump())
        await in_database(Conversation.objects.filter(pk=conversation_id).delete)()
        with pytest.raises(LeaseLost):
            await in_database(session._reload)()
        model_server.release()
