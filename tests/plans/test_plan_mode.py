"""Plan mode through the REST API: model calls, events, stored plans and usage."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.operations.database.threads import in_database
from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.api.running import read_all, send
from tests.api.stored_texts import copies_of, said, verified
from tests.context_engine.talking import settle, talking
from tests.plans.plan_talk import BROKEN, ask_planned, plan_events, usage_of
from tests.plans.planned_server import GOAL_MET, NOT_MET, PlannedServer, plan_of
from tests.servers.behaviour import says

pytestmark = pytest.mark.usefixtures("models")


SIX = plan_of(a="", b="", c="", d="a b", e="c", f="d e")


@pytest.mark.sqlite
async def test_a_plan_of_six_steps_completes_although_two_of_them_fail_once(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [SIX]
    planned.steps |= {"b": [BROKEN, "B is 2."], "e": [BROKEN, "E is 5."], "f": ["F is 6."]}
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
        assert answered["message"]["content"] == "The answer."
        steps = {step["id"]: step for step in answered["run"]["plan"]}
        assert {name: step["state"] for name, step in steps.items()} == dict.fromkeys("abcdef", "done")
        assert {name: step["attempts"] for name, step in steps.items()} == {
            "a": 1, "b": 2, "c": 1, "d": 1, "e": 2, "f": 1,
        }  # fmt: skip
        assert steps["e"]["result"] == "E is 5."
        [started] = await talk.events("run.started")
        assert (started["mode"], answered["run"]["mode"]) == ("plan", "plan")
        assert answered["message"]["run"]["plan"] == answered["run"]["plan"]
    states = await plan_events(talk)
    assert states[0] == {
        "a": "running",
        "b": "running",
        "c": "running",
        "d": "pending",
        "e": "pending",
        "f": "pending",
    }
    assert set(states[-1].values()) == {"done"}
    assert "E is 5." in planned.requests("step", "f")[0].text
    [final] = planned.requests("answer")
    assert all(found in final.text for found in ("B is 2.", "E is 5.", "F is 6.", *["Found."] * 3))
    assert "Incorrect API key" not in final.text
    assert final.messages[-1]["content"] == "What of A and B?"


async def test_independent_steps_call_the_model_concurrently_and_dependent_steps_wait(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [SIX]
    planned.steps |= {name: [says("Found.", hold_after=0)] for name in "abc"}
    async with talking(alice_program) as talk:
        answering = asyncio.ensure_future(ask_planned(talk))
        await asyncio.to_thread(planned.wait_for_steps, "a", "b", "c")
        assert len(planned.requests("step")) == 3
        planned.server.release()
        answered = await answering
    assert [step["attempts"] for step in answered["run"]["plan"]] == [1] * 6, answered["run"]["plan"]


@pytest.mark.sqlite
async def test_a_step_gets_its_task_and_the_results_of_its_dependencies_but_no_history(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [plan_of(a="", b="", c="a")]
    planned.steps |= {"a": ["A is 1."], "b": ["B is 2."]}
    async with talking(alice_program) as talk:
        await talk.ask("Remember the word heliotrope.", mode="react")
        await ask_planned(talk)
    assert "heliotrope" in planned.requests("planner")[0].text
    [asked] = planned.requests("step", "c")
    assert asked.body["model"] == "fast-model"
    assert "A is 1." in asked.text
    assert "B is 2." not in asked.text
    assert "heliotrope" not in asked.text
    assert "heliotrope" in planned.requests("answer")[-1].text


@pytest.mark.sqlite
async def test_a_step_that_fails_twice_is_reported_to_its_dependents_and_the_run_completes(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [plan_of(bad="", good="", both="bad good", lost="bad")]
    planned.steps["bad"] = [BROKEN]
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
    states = {step["id"]: step["state"] for step in answered["run"]["plan"]}
    assert states == {"bad": "failed", "good": "done", "both": "done", "lost": "skipped"}
    assert "Step bad (failed)" in planned.requests("step", "both")[0].text
    assert "Step bad (failed)" in planned.requests("answer")[0].text
    assert answered["run"]["status"] == "complete"


async def test_every_call_is_in_the_ledger_with_its_purpose_and_in_the_total(
    alice_program: Program, planned: PlannedServer
) -> None:
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
        told = await talk.events("usage")
    calls = await usage_of(answered["run_id"])
    assert sorted(calls) == sorted(
        [("plan", "Main"), ("plan", "Fast"), ("plan", "Fast"), ("plan", "Main"), ("chat", "Main")]
    )
    assert sorted(event["purpose"] for event in told) == ["chat", "plan", "plan", "plan", "plan"]
    assert answered["usage"]["input_tokens"] == sum(event["input_tokens"] for event in told)


@pytest.mark.sqlite
async def test_an_invalid_plan_leads_to_an_ordinary_answer_and_a_notice(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = ["I do not plan."]
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
        [notice] = await talk.events("run.notice")
    assert len(planned.requests("planner")) == 2
    assert notice["kind"] == "plan_dropped"
    assert "No usable plan" in notice["text"]
    assert answered["message"]["content"] == "The answer."
    assert answered["run"]["plan"] is None
    assert planned.requests("step") == []


@pytest.mark.sqlite
async def test_an_error_of_the_planner_fails_the_run(alice_program: Program, planned: PlannedServer) -> None:
    planned.plans = [BROKEN]
    async with talking(alice_program) as talk:
        failed = await talk.ask("What of A and B?", status=502, mode="plan")
    assert failed["error"]["details"]["category"] == "auth"


async def test_plan_events_precede_the_answer_in_the_stream(
    alice_program: Program, planned: PlannedServer
) -> None:
    async with talking(alice_program) as talk:
        events = await read_all(await send(talk.program, talk.id, "A and B?", mode="plan", stream=True))
        await settle()
    types = [event.type for event in events]
    assert types.count("run.finished") == 1
    assert types.index("plan") < types.index("text.delta")
    assert types[-1] == "run.finished"


@pytest.mark.sqlite
async def test_the_trace_names_the_purpose_of_each_call_of_a_plan(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = ["I do not plan.", plan_of(a=""), plan_of(b="")]
    planned.analyses = [NOT_MET, GOAL_MET]
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
        trace = (await talk.program.get(f"runs/{answered['run_id']}/trace")).json()
    assert [(step["plan_step"], step["title"], step["round"]) for step in trace["iterations"]] == [
        ("planner", None, 1),
        ("planner", None, 1),
        ("a", "Step a", 1),
        ("analyst", None, 1),
        ("planner", None, 2),
        ("b", "Step b", 2),
        ("analyst", None, 2),
        (None, None, None),
    ]


@pytest.mark.sqlite
async def test_other_users_cannot_read_a_plan(
    alice_program: Program, charlie_program: Program, planned: PlannedServer
) -> None:
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
        seen = await charlie_program.get(f"runs/{answered['run_id']}")
    assert seen.status_code == 404


@pytest.mark.sqlite
async def test_the_demo_model_makes_a_plan_and_states_its_limits(alice_program: Program) -> None:
    await in_database(ModelConfig.objects.update)(enabled=False)
    await in_database(ModelConfig.objects.create)(name="Demo", model_id="demo", kind="demo")
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk, "How large is Lisbon? How old is Porto?")
    assert [step["state"] for step in answered["run"]["plan"]] == ["done", "done", "done"]
    assert "can count words and not think" in answered["message"]["content"]


async def test_characters_that_no_database_stores_are_replaced_in_a_result(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [plan_of(a="", b="a")]
    planned.steps["a"] = ["Found \x00\ud83d it."]
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
    assert answered["run"]["plan"][0]["result"] == "Found \ufffd\ufffd it."
    assert "Found \ufffd\ufffd it." in planned.requests("step", "b")[0].text


async def test_results_of_a_plan_are_stored_once_and_its_requests_can_be_shown(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [plan_of(a="", b="a")]
    planned.steps |= {
        "a": ["The first finding is that harbour dues doubled in spring."],
        "b": ["The second finding is that the quay was repaired in autumn."],
    }
    async with talking(alice_program) as talk:
        await talk.ask("Remember the long word heliotrope for me, please.", mode="react")
        answered = await ask_planned(talk, "What became of the harbour and of the quay?")
        shown = await verified(alice_program, answered["run_id"])
        told = (await talk.events("plan"))[-1]["steps"]
    assert len(shown) >= 4
    assert all(shown)
    assert [step["result"] for step in told] == [planned.steps["a"][0], planned.steps["b"][0]]
    findings = [step["result"] for step in answered["run"]["plan"]]
    assert await in_database(lambda: copies_of([*said(), *findings]))() == 0
