"""Limits on the input of each caller in a plan, and on rounds and steps."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.providers.models import ModelConfig
from tests.api.program import Program
from tests.context_engine.talking import talking, words, work
from tests.plans.plan_talk import ask_planned
from tests.plans.planned_server import GOAL_MET, NOT_MET, Caller, PlannedServer, plan_of
from tests.servers.behaviour import says

pytestmark = pytest.mark.usefixtures("models")


@pytest.mark.mechanism("fim.plan-steps")
async def test_steps_use_the_fast_models_budget_and_the_answer_the_main_models(
    alice_program: Program, planned: PlannedServer
) -> None:
    """The window set for the conversation applies to the answering model. The fast model has a smaller one."""
    planned.plans = [plan_of(a="", b="a")]
    planned.steps["a"] = [words(12_000, "A-4711")]
    async with talking(alice_program, context_policy={"context_size": 60_000}) as talk:
        await ask_planned(talk)
    [asked] = planned.requests("step", "b")
    assert asked.body.get("max_tokens", asked.body.get("max_completion_tokens")) <= 1_000
    assert len(asked.text) < 4 * 7_000
    summaries = planned.server.requests_of("summary")
    assert {summary.body["model"] for summary in summaries} == {"fast-model"}
    assert all("shorten the result of one step" in summary.text for summary in summaries)
    [final] = planned.requests("answer")
    assert final.body["model"] == "main-model"
    assert len(final.text) > 40_000


async def test_a_users_input_limit_applies_to_steps_too(
    alice_program: Program, planned: PlannedServer
) -> None:
    planned.plans = [plan_of(a="", b="a")]
    planned.steps["a"] = [words(4_000, "A-4711")]
    async with talking(alice_program, context_policy={"max_input_tokens": 4_000}) as talk:
        await ask_planned(talk)
    [asked] = planned.requests("step", "b")
    assert len(asked.text) < 4 * 4_000


async def test_step_analyst_and_planner_get_a_long_result_up_to_their_own_limits(
    alice_program: Program, planned: PlannedServer
) -> None:
    await ModelConfig.objects.aupdate(context_size=200_000, max_output_tokens=4_000)
    planned.plans = [plan_of(a="", b="a"), plan_of(c="")]
    planned.analyses = [NOT_MET, GOAL_MET]
    planned.steps["a"] = [says("xq " * 18_000, tokens_per_write=1_000)]
    async with talking(alice_program) as talk:
        await ask_planned(talk)

    def chars(caller: Caller, at: int, step: str = "") -> int:
        return 3 * planned.requests(caller, step)[at].text.count("xq")

    assert 49_000 < chars("step", 0, "b") <= 50_000
    assert 9_000 < chars("analyst", 0) <= 10_000
    assert 300 < chars("planner", 1) <= 500


@pytest.mark.mechanism("fim.plan-history")
async def test_without_checkpoints_the_fast_model_summarises_a_long_history_for_the_planner(
    alice_program: Program, planned: PlannedServer
) -> None:
    history = [
        {"role": role, "content": words(1_200, "Lisbon")} for _ in range(10) for role in ("user", "assistant")
    ]
    async with talking(alice_program, history, context_policy={"auto_compact": False}) as talk:
        await ask_planned(talk, "And now, what of A and B?")
    summaries = planned.server.requests_of("summary")
    assert summaries
    assert all("prepare a conversation for a planner" in request.text for request in summaries)
    asked = planned.requests("planner")[0]
    assert len(asked.messages) == 2
    assert "Previous conversation:" in asked.text
    assert asked.messages[1]["content"].endswith("And now, what of A and B?")
    assert len(asked.text) < 4 * 16_000


@pytest.mark.mechanism("fim.plan-history")
async def test_a_long_history_is_summarised_once_for_two_plans(
    alice_program: Program, planned: PlannedServer
) -> None:
    history = [
        {"role": role, "content": words(1_200, "Lisbon")} for _ in range(10) for role in ("user", "assistant")
    ]
    async with talking(alice_program, history) as talk:
        await ask_planned(talk, "And now, what of A and B?")
        [checkpoint] = await talk.compactions()
        assert checkpoint["status"] == "done"
        assert await work() == 0
        summaries = planned.server.requests_of("summary")
        assert not any("prepare a conversation for a planner" in request.text for request in summaries)
        assert checkpoint["summary"][:200] in planned.requests("planner")[0].text
        await ask_planned(talk, "And what of C and D?")
    assert planned.server.requests_of("summary") == summaries


async def test_recent_messages_too_long_for_the_planner_are_not_compacted_at_each_question(
    alice_program: Program, planned: PlannedServer
) -> None:
    history = [
        {"role": role, "content": words(1_800, "Lisbon")} for _ in range(10) for role in ("user", "assistant")
    ]
    async with talking(alice_program, history) as talk:
        for question in ("And now, what of A and B?", "And what of C and D?"):
            await ask_planned(talk, question)
            assert len(await talk.compactions("done")) == 1


@pytest.mark.mechanism("fim.plan-analysis")
async def test_replanning_ends_after_three_rounds(alice_program: Program, planned: PlannedServer) -> None:
    planned.analyses = [NOT_MET]
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
        rounds = [event["round"] for event in await talk.events("plan")]
    assert len(planned.requests("planner")) == 3
    assert "the price of B" in planned.requests("planner")[1].text
    assert (rounds[0], rounds[-1]) == (1, 3)
    assert [step["round"] for step in answered["run"]["plan"]] == [1, 1, 2, 2, 3, 3]
    assert "Not found out: the price of B" in planned.requests("answer")[0].text


async def test_a_round_has_at_most_twelve_steps(alice_program: Program, planned: PlannedServer) -> None:
    planned.plans = [plan_of(**{f"s{number}": "" for number in range(13)}), plan_of(a="")]
    async with talking(alice_program) as talk:
        answered = await ask_planned(talk)
    assert "at most 12" in planned.requests("planner")[1].text
    assert [step["id"] for step in answered["run"]["plan"]] == ["a"]


async def test_at_most_eight_steps_call_models_at_the_same_time(
    alice_program: Program, planned: PlannedServer
) -> None:
    names = [f"s{number}" for number in range(10)]
    planned.plans = [plan_of(**dict.fromkeys(names, ""))]
    planned.steps |= {name: [says("Found.", hold_after=0)] for name in names[:8]}
    async with talking(alice_program) as talk:
        answering = asyncio.ensure_future(ask_planned(talk))
        await asyncio.to_thread(planned.wait_for_steps, *names[:8])
        assert len(planned.requests("step")) == 8
        planned.server.release()
        answered = await answering
    assert {step["state"] for step in answered["run"]["plan"]} == {"done"}
