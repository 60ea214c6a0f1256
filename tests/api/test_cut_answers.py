"""Answers that end at a limit: the provider's limit or filter, or our limits of tokens, bytes and time."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.running import new_conversation, read_all, running_service, send
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer

if TYPE_CHECKING:
    from chatapp.providers.models import ModelConfig
    from tests.api.program import Program


async def ask(program: Program, conversation_id: str) -> dict[str, Any]:
    answer = await send(program, conversation_id)
    assert answer.status_code == 200, answer.content
    message: dict[str, Any] = answer.json()["message"]
    return message


@pytest.mark.mechanism("contract.ends")
@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (says("The first half", finish_reason="length"), "length"),
        (says("The first half", finish_reason="content_filter"), "content_filter"),
        (says("The first half", finish_reason="cosmic_rays"), "unknown_reason"),
        (says("The lost first half", fault="lost_event", fault_after=1), "lost"),
    ],
)
async def test_an_answer_cut_by_the_provider_gives_the_reason_and_can_be_continued(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, behaviour: Behaviour, reason: str
) -> None:
    model_server.script(behaviour, says("and the second."))
    async with running_service():
        conversation_id = await new_conversation(alice_program)
        cut = await ask(alice_program, conversation_id)
        assert (cut["status"], cut["content"], cut["error"]["category"]) == ("cut", "The first half", reason)
        assert re.fullmatch(r"[^.]+; [^.]+\.( Press [^.]+\.)?", cut["error"]["message"])
        run = (await alice_program.get(f"runs/{cut['run']['id']}")).json()
        assert (run["status"], run["error"]["category"]) == ("complete", reason)
        page = (await alice_program.get(f"conversations/{conversation_id}/messages")).json()["items"]
        assert page[-1]["status"] == "cut"
        went_on = await alice_program.post(f"runs/{run['id']}/continue")
        assert went_on.json()["message"]["status"] == "complete", went_on.content


@pytest.mark.mechanism("contract.ends")
async def test_an_endless_answer_is_stopped_and_keeps_its_text(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("and so on", is_endless=True))
    async with running_service():
        conversation_id = await new_conversation(alice_program)
        stream = await send(alice_program, conversation_id, stream=True)
        events = await read_all(stream)
        shown = "".join(event.data["text"] for event in events if event.type == "text.delta")
        finished = events[-1].data
        assert (finished["type"], finished["status"], finished["error"]["category"]) == (
            "run.finished",
            "complete",
            "bound",
        )
        completed = next(event.data["message"] for event in events if event.type == "message.completed")
        assert (completed["status"], completed["content"]) == ("cut", shown)
        assert completed["content"].startswith("and so on on")
        await asyncio.to_thread(model_server.wait_until, lambda server: "lost" in server.requests[-1].times)
        model_server.script(says("At last."))
        went_on = await alice_program.post(f"runs/{finished['run_id']}/continue")
        assert went_on.json()["message"]["content"] == "At last."


async def test_an_endless_tool_call_is_not_run(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, settings: Any
) -> None:
    settings.MAX_ANSWER_BYTES = 20_000
    call = {"name": "clock", "arguments": '{"zone": "' + "x" * 24}
    model_server.script(Behaviour(text="Let me look.", tool_calls=(call,), is_endless=True))
    async with running_service():
        cut = await ask(alice_program, await new_conversation(alice_program))
        assert (cut["status"], cut["error"]["category"], cut["content"]) == ("cut", "bound", "Let me look.")
        assert not cut.get("tools")
        assert len(model_server.requests) == 1


async def test_endless_reasoning_is_kept_and_reported_as_an_error(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, settings: Any
) -> None:
    settings.MAX_ANSWER_BYTES = 20_000
    model_server.script(Behaviour(text="", tokens=0, reasoning="hm hm", is_endless=True))
    async with running_service():
        answer = await send(alice_program, await new_conversation(alice_program))
        details = answer.error["details"]
        assert (details["category"], details["message"]["status"]) == ("bound", "failed")
        assert details["message"]["content"][0]["text"].startswith("hm hm hm")


async def test_an_answer_that_takes_too_long_is_cut_at_the_deployments_limit(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, settings: Any
) -> None:
    settings.ANSWER_TIME_LIMIT_S = 1
    model_server.script(says("one two three four", hold_after=2))
    async with running_service():
        cut = await ask(alice_program, await new_conversation(alice_program))
        assert (cut["status"], cut["error"]["category"], cut["content"]) == ("cut", "bound", "one two")
        assert "time limit of 1 s" in cut["error"]["message"]
