"""The mode of an answer is set by the message, the conversation, the agent, or in auto mode by the question."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.agent_presets.models import Agent
from chatapp.operations.database.threads import in_database
from tests.api.program import Program
from tests.context_engine.talking import Talk, settle, talking
from tests.plans.planned_server import PlannedServer

pytestmark = pytest.mark.usefixtures("models")


@pytest.mark.parametrize(
    ("question", "mode"), [("1. price of A\n2. price of B\n3. the difference", "plan"), ("Hello", "react")]
)
async def test_auto_mode_chooses_by_the_question(
    alice_program: Program, planned: PlannedServer, question: str, mode: str
) -> None:
    async with talking(alice_program, mode="auto") as talk:
        answered = await talk.ask(question)
        [started] = await talk.events("run.started")
    assert started["mode"] == mode
    assert bool(planned.requests("planner")) is (mode == "plan")
    assert answered["message"]["content"] == "The answer."


async def test_the_mode_comes_from_the_message_then_the_conversation_then_the_agent(
    alice_program: Program, planned: PlannedServer
) -> None:
    await in_database(Agent.objects.create)(name="Planner", mode="plan")

    async def mode_of_answer(talk: Talk, **fields: Any) -> str:
        await talk.ask("What of A?", **fields)
        return str((await talk.events("run.started"))[-1]["mode"])

    async with talking(alice_program, agent="Planner") as talk:
        assert await mode_of_answer(talk) == "plan"
        changed = await talk.program.patch(f"conversations/{talk.id}", mode="react")
        assert changed.json()["mode"] == "react"
        assert await mode_of_answer(talk) == "react"
        assert await mode_of_answer(talk, mode="plan") == "plan"
        assert await mode_of_answer(talk) == "react"
        changed = await talk.program.patch(f"conversations/{talk.id}", mode=None)
        assert changed.json()["mode"] is None
        assert await mode_of_answer(talk) == "plan"
        refused = await talk.program.patch(f"conversations/{talk.id}", mode="magic")
        assert refused.status_code == 422


async def test_an_answer_can_be_regenerated_in_another_mode(
    alice_program: Program, planned: PlannedServer
) -> None:
    async with talking(alice_program) as talk:
        first = await talk.ask("What of A?")
        again = await talk.program.post(
            f"conversations/{talk.id}/messages/{first['message']['id']}/regenerate", mode="plan"
        )
        await settle()
        run = (await talk.program.get(f"runs/{again.json()['run_id']}")).json()
        assert run["mode"] == "plan"
        assert len(run["plan"]) == 2
        once_more = await talk.program.post(
            f"conversations/{talk.id}/messages/{again.json()['message']['id']}/regenerate"
        )
        await settle()
        assert (await talk.program.get(f"runs/{once_more.json()['run_id']}")).json()["mode"] == "plan"
