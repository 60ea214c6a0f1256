"""Plans that are stopped, continued, or sent a message while their steps run."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.operations.database.threads import in_database
from chatapp.runs.models import Run
from tests.api.program import Program
from tests.api.running import send, wait_for_end
from tests.context_engine.talking import settle, talking
from tests.plans.plan_talk import ask_planned, plan_events, until_step, usage_of
from tests.plans.planned_server import PlannedServer, plan_of
from tests.servers.behaviour import says

pytestmark = pytest.mark.usefixtures("models")


async def test_stopping_a_plan_ends_its_steps_and_keeps_finished_results(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [plan_of(a="", b="", c="a b")]
    planned.steps["b"] = [says("Never said.", hold_after=2)]
    async with talking(alice_program) as talk:
        sent = await send(
            talk.program, talk.id, "A and B?", mode="plan", stream=False, headers={"Prefer": "respond-async"}
        )
        run_id = sent.json()["run_id"]
        await asyncio.to_thread(planned.wait_for_steps, "a", "b")
        await until_step(talk, "a", "done")
        await talk.program.post(f"runs/{run_id}/stop")
        run = await wait_for_end(talk.program, run_id)
        await settle()
        [lost] = planned.requests("step", "b")
        await asyncio.to_thread(planned.server.wait_until, lambda _: "lost" in lost.times)
        assert run["status"] == "stopped"
        assert [step["state"] for step in run["plan"]] == ["done", "skipped", "skipped"]
        assert (await plan_events(talk))[-1] == {"a": "done", "b": "skipped", "c": "skipped"}
        purposes = [purpose for purpose, _ in await usage_of(run_id)]
    assert purposes == ["plan", "plan", "plan"]
    assert planned.requests("answer") == []


async def test_continuing_a_stopped_plan_runs_only_unfinished_steps(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [plan_of(a="", b="")]
    planned.steps |= {"a": ["A is 1."], "b": [says("Never said.", hold_after=0), "B is 2."]}
    async with talking(alice_program) as talk:
        sent = await send(talk.program, talk.id, "A and B?", mode="plan", headers={"Prefer": "respond-async"})
        run_id = sent.json()["run_id"]
        await until_step(talk, "a", "done")
        await talk.program.post(f"runs/{run_id}/stop")
        await wait_for_end(talk.program, run_id)
        await settle()
        continued = await talk.program.post(f"runs/{run_id}/continue", stream=False)
        assert continued.status_code == 200, continued.content
        await settle()
        trace = (await talk.program.get(f"runs/{continued.json()['run_id']}/trace")).json()
    rounds = [(step["plan_step"], step["round"]) for step in trace["iterations"]]
    assert rounds == [("b", 1), ("analyst", 1), (None, None)]
    assert (len(planned.requests("planner")), len(planned.requests("step", "a"))) == (1, 1)
    assert len(planned.requests("step", "b")) == 2
    final = planned.requests("answer")[0].text
    assert "A is 1." in final
    assert "B is 2." in final
    assert (await in_database(Run.objects.get)(pk=continued.json()["run_id"])).mode == "plan"


async def test_a_message_sent_while_steps_run_is_included_in_the_answers_request(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.steps["a"] = [says("Found.", hold_after=0)]
    async with talking(alice_program) as talk:
        answering = asyncio.ensure_future(ask_planned(talk))
        await asyncio.to_thread(planned.wait_for_steps, "a")
        injected = await talk.program.post(f"conversations/{talk.id}/inject", content="In euros, please.")
        assert injected.json()["injected"] is True
        planned.server.release()
        await answering
    assert "In euros, please." in planned.requests("answer")[0].text
    assert len(planned.requests("answer")) == 1
