"""The context as the model would see it, and its summaries, through the API."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from chatapp.compaction import requests as compaction_requests
from chatapp.compaction.compactor import compact
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Message
from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from chatapp.realtime.models import Event
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer


async def long_conversation(program: Program, count: int = 60) -> str:
    messages = [
        {"role": ("user", "assistant")[number % 2], "content": f"Message {number}: " + "plain words " * 20}
        for number in range(count)
    ]
    return str((await program.post("conversations/import", messages=messages)).json()["id"])


@pytest.mark.mechanism("ours.inspector")
async def test_the_inspector_shows_the_next_request_and_writes_no_rows(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation = await long_conversation(alice_program)
        before = await Message.objects.acount(), await Event.objects.acount()
        answer = await alice_program.post(
            f"conversations/{conversation}/context", query="What was message 7?"
        )
        assert answer.status_code == 200, answer.content
        seen = answer.json()
        assert {"messages", "total_tokens", "budget_tokens", "pressure", "compaction", "recalled"} <= set(
            seen
        )
        assert seen["messages"][0]["role"] == "system"
        assert seen["messages"][-1]["content"].endswith("What was message 7?")
        assert sum(message["tokens"] for message in seen["messages"]) == seen["total_tokens"]
        assert seen["total_tokens"] <= seen["budget_tokens"]
        assert (await Message.objects.acount(), await Event.objects.acount()) == before
        assert model_server.requests == []
        sent = await send(alice_program, conversation, "What was message 7?")
        assert sent.status_code == 200
        asked = model_server.requests_of("chat")[0].messages
        assert [item["role"] for item in asked] == [item["role"] for item in seen["messages"]]


async def test_an_explicit_budget_is_for_messages_only_not_for_tool_schemas(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await long_conversation(alice_program)
        path = f"conversations/{conversation}/context"
        whole = (await alice_program.post(path, query="What was message 7?")).json()
        small = (await alice_program.post(path, query="What was message 7?", budget_tokens=600)).json()
    assert whole["parts"]["tools"] > 600
    assert small["parts"]["tools"] == 0
    assert small["messages"][0]["content"] == whole["messages"][0]["content"]
    assert sum(message["tokens"] for message in small["messages"]) == small["total_tokens"] <= 600


async def test_a_budget_too_small_for_the_question_returns_422(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await long_conversation(alice_program, 4)
        answer = await alice_program.post(
            f"conversations/{conversation}/context", query="long " * 50_000, budget_tokens=4_000
        )
        assert answer.status_code == 422


@pytest.mark.mechanism("agentscope.compact-now", "ours.edit")
async def test_a_summary_can_be_requested_read_and_edited(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("They exchanged plain words."), kind="summary")
    async with running_service():
        conversation = await long_conversation(alice_program)
        asked = await alice_program.post(f"conversations/{conversation}/compact", keep="the numbers")
        assert asked.status_code == 200, asked.content
        assert asked.json()["status"] == "pending"
        again = await alice_program.post(f"conversations/{conversation}/compact")
        assert (again.status_code, again.error["code"]) == (409, "compaction_active")
        await in_database(compact)(UUID(asked.json()["id"]))  # as the worker would
        [row] = (await alice_program.get(f"conversations/{conversation}/compactions")).json()["items"]
        assert (row["status"], row["first_position"]) == ("done", 0)
        assert "plain words" in row["summary"]
        assert row["usage"]["input_tokens"] > 0

        path = f"conversations/{conversation}/compactions/{row['id']}"
        changed = await alice_program.patch(path, summary="In my own words: nothing happened.")
        assert changed.status_code == 200
        seen = (await alice_program.post(f"conversations/{conversation}/context", query="And now?")).json()
        assert "In my own words: nothing happened." in str(seen["messages"])
        assert len(seen["messages"]) < 60
        await send(alice_program, conversation, "And now?")
        assert "In my own words: nothing happened." in model_server.requests_of("chat")[-1].text


@pytest.mark.mechanism("agentscope.compact-now")
async def test_too_few_messages_to_summarise_return_409(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = await alice_program.post(f"conversations/{conversation}/compact")
        assert (answer.status_code, answer.error["code"]) == (409, "nothing_to_compact")


async def test_waiting_for_a_summary_whose_conversation_is_deleted_returns_404(
    alice_program: Program, model: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = compaction_requests._queue_asked

    def deleted_meanwhile(*given: Any) -> Compaction:
        row = real(*given)
        Compaction.objects.all().delete()  # as the deletion of the conversation does in the end
        return row

    monkeypatch.setattr(compaction_requests, "_queue_asked", deleted_meanwhile)
    async with running_service():
        conversation = await long_conversation(alice_program)
        answer = await alice_program.post(f"conversations/{conversation}/compact", wait=True)
        assert answer.status_code == 404


async def test_empty_and_premature_edits_of_a_summary_are_refused(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await long_conversation(alice_program)
        made = await alice_program.post(f"conversations/{conversation}/compact")
        path = f"conversations/{conversation}/compactions/{made.json()['id']}"
        assert (await alice_program.patch(path, summary="")).status_code == 422
        assert (await alice_program.patch(path, summary="Too early.")).status_code == 409


async def test_an_unknown_strategy_is_refused(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        conversation = await long_conversation(alice_program)
        answer = await alice_program.post(f"conversations/{conversation}/compact", strategy="magic")
        assert answer.status_code == 422
