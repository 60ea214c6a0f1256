"""The steps of a plan against scripted models: their budgets, their inputs and the calls that are counted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.background.summarise import SummaryResult
from agents.chat_models.error_mapping import describe_error
from agents.loop.react import AgentStep, CallFinished
from agents.plan.prompts import ANALYST_MARK, PLANNER_MARK, STEP_MARK
from agents.plan.run import PlanReady, PlanRequest, run_plan
from agents.plan.scheduler import StepFailed
from agents.plan.steps import DEPENDENCY_CHARS, PlanStep
from agents.plan.working import BudgetedModel, LoopModels, PlanPorts
from agents.ports import ToolUse
from agents.tools.protocol import ToolCaller, ToolOutput, ToolTraits
from agents.types import ToolCallDelta, ToolSpec
from memory.budget import TokenBudget
from memory.tokens import Calibration, estimate_text, text_message
from memory.window.policy import ContextPolicy
from tests.agents.asking import no_tools
from tests.agents.scripted_model import Said, ScriptedModel

STEP = PlanStep("a", "A", "Find A.")


@dataclass
class Heard:
    """Records what the ports report."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    summaries: list[SummaryResult] = field(default_factory=list)

    def took(self, step: AgentStep, who: str) -> None:
        if isinstance(step, CallFinished):
            self.calls.append((who, step.reason))


class Look:
    spec = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
    traits = ToolTraits()

    async def call(self, arguments: Mapping[str, Any], caller: ToolCaller) -> ToolOutput:
        return ToolOutput("seen 42")


def ruled(model: ScriptedModel, window: int = 32_000) -> BudgetedModel:
    return BudgetedModel(model, ContextPolicy(), TokenBudget(window, window // 4, 1_000))


def make_models(
    main: ScriptedModel, fast: ScriptedModel, heard: Heard, *, fast_window: int = 32_000, tools: bool = False
) -> LoopModels:
    use = ToolUse([Look()], ToolCaller("u", "c", "r"))

    async def tool_use(step: PlanStep) -> ToolUse | None:
        return use if tools else None

    ports = PlanPorts(heard.took, heard.summaries.append, tool_use)
    return LoopModels(ruled(main), ruled(fast, fast_window), "Be kind.", ports)


async def test_a_step_without_dependencies_sends_only_its_task_to_the_fast_model() -> None:
    main, fast, heard = ScriptedModel(), ScriptedModel(["A is 3."]), Heard()
    assert await make_models(main, fast, heard).run_step(STEP, ()) == "A is 3."
    [request] = fast.requests
    system, task = request.messages
    assert system.text.startswith(STEP_MARK)
    assert "Be kind." in system.text
    assert task.text == "Find A."
    assert main.requests == []
    assert heard.calls == [("a", "stop")]


@pytest.mark.mechanism("fim.plan-dependencies")
async def test_a_step_keeps_to_the_fast_models_budget() -> None:
    """A result that fits the main model's window is shortened for the smaller window of the fast model."""
    fast, heard = ScriptedModel(["The population of A is 1234.", "Done."]), Heard()
    models = make_models(ScriptedModel(), fast, heard, fast_window=8_000)
    done = PlanStep(
        "x", "X", "Find X.", state="done", result="The population is 1234. " + "Many words. " * 4_000
    )
    await models.run_step(STEP, (done,))
    summary, request = fast.requests[0], fast.requests[-1]
    assert "You shorten the result of one step" in summary.messages[0].text
    assert sum(message.tokens for message in request.messages) < 5_000
    assert request.max_output_tokens <= 2_000
    assert "1234" in request.messages[1].text
    assert len(heard.summaries) == 1


async def test_results_that_fit_and_failures_are_passed_on_unchanged() -> None:
    fast = ScriptedModel(["Done."])
    models = make_models(ScriptedModel(), fast, Heard())
    done = PlanStep("x", "X", "Find X.", state="done", result="X is 4.")
    failed = PlanStep("y", "Y", "Find Y.", state="failed", result="No answer in time.")
    await models.run_step(STEP, (done, failed))
    texts = [message.text for message in fast.requests[0].messages]
    assert "Step x (done): X\n\nX is 4." in texts[1]
    assert "Step y (failed): Y\n\nNo answer in time." in texts[2]


async def test_a_step_uses_its_tools_and_its_last_text_is_its_result() -> None:
    call = Said("Let me look. ", items=(ToolCallDelta(0, "1", "look", "{}"),), reason="tool_calls")
    fast, heard = ScriptedModel([call, "I saw 42."]), Heard()
    assert await make_models(ScriptedModel(), fast, heard, tools=True).run_step(STEP, ()) == "I saw 42."
    assert "seen 42" in fast.requests[1].messages[-1].tool_results[0].text
    assert [who for who, _ in heard.calls] == ["a", "a"]


@pytest.mark.parametrize("said", [describe_error("auth"), Said("")])
async def test_an_error_or_an_empty_answer_fails_the_step(said: Any) -> None:
    with pytest.raises(StepFailed, match=r"."):
        await make_models(ScriptedModel(), ScriptedModel([said]), Heard()).run_step(STEP, ())


async def test_a_long_result_is_cut() -> None:
    fast = ScriptedModel(["x" * 90_000])
    result = await make_models(ScriptedModel(), fast, Heard()).run_step(STEP, ())
    assert len(result) <= DEPENDENCY_CHARS


class Named:
    """A model that answers by the kind of caller, so that parallel steps need no order."""

    name = "named"

    def __init__(self, **answers: str) -> None:
        self.inner = ScriptedModel()
        self.answers = answers

    async def stream(self, request: Any) -> AsyncGenerator[Any, None]:
        marks = {PLANNER_MARK: "plan", ANALYST_MARK: "analysis", STEP_MARK: "step"}
        system = request.messages[0].text
        kind = next((kind for mark, kind in marks.items() if system.startswith(mark)), "summary")
        async for item in ScriptedModel([self.answers[kind]]).stream(request):
            yield item


async def test_a_whole_plan_runs_with_two_models() -> None:
    main = Named(plan='{"steps": [{"id": "a", "task": "Find A."}, {"id": "b", "task": "Find B.", "dependencies": ["a"]}]}',
                 analysis='{"goal_met": true, "confidence": 1}')  # fmt: skip
    heard = Heard()
    models = LoopModels(
        BudgetedModel(main, ContextPolicy(), TokenBudget(32_000, 4_000, 1_000)),
        BudgetedModel(Named(step="Found."), ContextPolicy(), TokenBudget(8_000, 1_000, 1_000)),
        "Be kind.",
        PlanPorts(heard.took, heard.summaries.append, no_tools),
    )
    question = text_message("user", "A and B?", kind="question")
    items = [
        item async for item in run_plan(models, PlanRequest(question, (), "Be kind.", 27_000, Calibration()))
    ]
    assert isinstance(items[-1], PlanReady)
    assert [who for who, _ in heard.calls] == ["planner", "a", "b", "analyst"]
    assert estimate_text(items[-1].reports) < 100


async def test_ending_a_plan_ends_the_calls_of_its_steps() -> None:
    waits = asyncio.Event()
    fast = ScriptedModel(default=Said("never", waits_for=waits))
    main = Named(plan='{"steps": [{"id": "a", "task": "A."}, {"id": "b", "task": "B."}]}', analysis="{}")
    models = LoopModels(ruled(main), ruled(fast), "", PlanPorts(lambda *_: None, lambda _: None, no_tools))  # type: ignore[arg-type]
    plan = run_plan(models, PlanRequest(text_message("user", "A and B?"), (), "", 27_000))
    await anext(plan)
    before = asyncio.all_tasks()
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(fast.requests) == 2
    await plan.aclose()
    assert len(asyncio.all_tasks()) <= len(before) - 2
