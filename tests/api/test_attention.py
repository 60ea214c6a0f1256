"""Unread answers and tool calls to approve, which the server keeps for all devices of a user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from chatapp.providers.models import ModelConfig
from tests.api import own_tools
from tests.api.program import Program
from tests.api.running import (
    new_conversation,
    read_all,
    running_service,
    send,
    sent_events,
    wait_for_end,
    wait_for_words,
)
from tests.api.tool_talk import asks_for, start, wait_for_tool
from tests.servers.behaviour import Behaviour, says
from tests.servers.openai_server import ModelServer


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    with own_tools.at_hand("pay"):
        yield


async def waiting(program: Program) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await program.get("conversations", attention="true")).json()["items"]
    return items


async def attention_told(program: Program, conversation: str) -> list[dict[str, Any]]:
    """Return the fields of each `conversation.attention` event of the conversation so far."""
    last = (await program.get(f"conversations/{conversation}")).json()["last_seq"]
    answer = await program.get(f"conversations/{conversation}/events", after_seq=0)
    told = []
    async for event in sent_events(answer):
        if event.type == "conversation.attention":
            told.append(
                {name: event.data[name] for name in ("unread", "waiting_calls") if name in event.data}
            )
        if event.id == last:
            break
    await answer.hang_up()
    return told


async def test_an_answer_is_unread_until_a_page_has_shown_it(
    alice_program: Program, charlie_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        assert await waiting(alice_program) == []
        await send(alice_program, conversation, stream=False)
        [found] = await waiting(alice_program)
        assert (found["id"], found["unread"], found["waiting_calls"]) == (conversation, True, 0)

        path = f"conversations/{conversation}/read"
        assert (await charlie_program.post(path, message_count=2)).status_code == 404
        assert (await alice_program.post(path, message_count=1)).status_code == 204
        assert [row["unread"] for row in await waiting(alice_program)] == [True], (
            "only the question was shown"
        )
        for _ in range(2):
            assert (await alice_program.post(path, message_count=found["message_count"])).status_code == 204
        assert await waiting(alice_program) == []
        assert await attention_told(alice_program, conversation) == [{"unread": True}, {"unread": False}]

        assert (await alice_program.post(path, message_count=10**6)).status_code == 204
        await send(alice_program, conversation, stream=False)
        assert [row["unread"] for row in await waiting(alice_program)] == [True], (
            "what was not there was not seen"
        )
        assert await waiting(charlie_program) == []


async def test_the_event_at_the_end_of_a_run_marks_the_conversation_unread(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        events = await read_all(await send(alice_program, conversation, stream=True))
    said = [event.data["conversation"] for event in events if event.type == "conversation.updated"]
    assert said[-1]["unread"]
    assert said[-1]["active_run"] is None
    assert not any(shape["unread"] for shape in said[:-1])


async def test_an_imported_conversation_is_not_unread(alice_program: Program) -> None:
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    answer = await alice_program.post("conversations/import", messages=said)
    assert answer.status_code == 201
    assert await waiting(alice_program) == []


@pytest.mark.parametrize("decision", ["approve", "stop"])
async def test_a_tool_call_waits_until_it_is_decided_or_stopped(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, decision: str
) -> None:
    model_server.script(asks_for("pay", say="paid"), says("As you say."))
    async with running_service():
        conversation, run = await start(alice_program)
        call = await wait_for_tool(alice_program, conversation, "waiting")
        [found] = await waiting(alice_program)
        assert (found["id"], found["unread"], found["waiting_calls"]) == (conversation, False, 1)
        path = f"conversations/{conversation}/read"
        assert (await alice_program.post(path, message_count=1)).status_code == 204
        how = "stop" if decision == "stop" else f"tools/{call['call_id']}/{decision}"
        assert (await alice_program.post(f"runs/{run}/{how}")).status_code < 300
        await wait_for_end(alice_program, run)
        [found] = await waiting(alice_program)
        assert (found["unread"], found["waiting_calls"]) == (True, 0)
        told = await attention_told(alice_program, conversation)
    assert told == [{"waiting_calls": 1}, {"unread": False}, {"waiting_calls": 0}]


async def test_an_answer_in_progress_is_not_unread(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(Behaviour(text="A long answer.", hold_after=1))
    async with running_service():
        _, run = await start(alice_program)
        await wait_for_words(model_server)
        assert await waiting(alice_program) == []
        model_server.release()
        await wait_for_end(alice_program, run)
        assert [row["unread"] for row in await waiting(alice_program)] == [True]
