"""A tool loop over its budget: which messages leave, who summarises them, and how their results stay available."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest

from agents.background.summarise import Summariser, SummaryResult
from agents.chat_models.error_mapping import describe_error
from agents.loop.react import AgentStep, Notice, run_react
from agents.loop.request import LoopRequest, _list_stored
from memory.budget import TokenBudget
from memory.summaries.summary_prompts import compaction_prompt
from memory.tokens import Calibration, text_message, total_tokens, with_parts
from memory.types import Checkpoint, Message, ToolCallPart, ToolResultPart
from tests.agents.asking import assemble, collect_steps, history_of, make_inputs, text_of
from tests.agents.looping import context_with, results_of, run
from tests.agents.scripted_model import ScriptedModel
from tests.agents.tooling import FakeTool, World, calls


@pytest.mark.mechanism("fim.react")
async def test_results_that_overflow_the_window_many_times_never_exceed_the_budget() -> None:
    question = "What now?"
    tool = FakeTool(answer=lambda arguments: f"result {arguments['number']} " + "some words of it " * 400)
    script = [calls(("look_up", {"number": number})) for number in range(30)]
    model = ScriptedModel(script, default="All done.")
    world = World()
    steps = await run(model, tool, world=world, window=16_000, max_steps=40)
    context = context_with(tool, window=16_000)
    assert text_of(steps) == "All done."
    assert len(tool.calls) == 30
    for request in model.requests:
        assert sum(message.tokens for message in request.messages) <= context.budget_tokens
        assert [message.text for message in request.messages if message.kind == "question"] == [question]
    assert any("result 1 " in text for text in world.texts.values())
    assert "result 29" in results_of(model)[-1]


async def test_an_overflow_in_the_middle_of_a_loop_is_retried_with_less() -> None:
    tool = FakeTool(answer=lambda arguments: "some words of it " * 1_500)
    script = [calls(("look_up", {"number": number})) for number in range(3)]
    model = ScriptedModel([*script, describe_error("overflow"), "Fine now."])
    steps = await run(model, tool, messages=history_of(20, words=40))
    assert text_of(steps) == "Fine now."
    before, after = (sum(message.tokens for message in request.messages) for request in model.requests[-2:])
    assert after <= before * 0.6
    assert [step.kind for step in steps if isinstance(step, Notice)] == ["shrunk"]


class Summaries:
    """A summary model for the middle of an answer, and the results it reported."""

    def __init__(self, *said: Any) -> None:
        self.model = ScriptedModel(list(said))
        self.noted: list[SummaryResult] = []
        self.summariser = Summariser(self.model, TokenBudget(32_000, 2_000), Calibration(), self.noted.append)

    def ask(self, main: ScriptedModel, **policy: Any) -> AsyncGenerator[AgentStep, None]:
        """Run the loop with a long history and a tool whose result does not fit beside it."""
        tool = FakeTool(answer=lambda arguments: "found something " * 4_000)
        messages = history_of(112, words=80)
        context = context_with(tool, window=20_000, messages=messages, tool_result_limit=5_000, **policy)
        return run_react(main, context, tool_use=World().use(tool), summariser=self.summariser)


WAITING: list[dict[str, Any]] = [
    {"strategy": "summarize"},
    {"strategy": "structured"},
    {"strategy": "checkpoint", "wait_for_summary": True},
]


@pytest.mark.mechanism("fim.guard-summary")
@pytest.mark.parametrize("policy", WAITING)
async def test_a_policy_that_waits_for_summaries_has_a_model_summarise_dropped_messages(
    policy: dict[str, Any],
) -> None:
    main = ScriptedModel([calls(("look_up", {})), "Here you are."])
    summaries = Summaries("They talked about numbered messages up to 50, and asked for a look.")
    steps, error = await collect_steps(summaries.ask(main, **policy))
    assert error is None
    [asked] = summaries.model.requests
    assert "Message 50 says" in asked.messages[1].text
    if policy["strategy"] != "structured":
        assert asked.messages[0].text == compaction_prompt("react_iteration", max_tokens=1_024)
    request = main.requests[1]
    assert "They talked about numbered messages" in request.messages[1].text
    assert [message.text for message in request.messages].count("What now?") == 1
    assert request.messages[-1].role == "tool"
    assert total_tokens(request.messages) <= 14_000
    assert [step.kind for step in steps if isinstance(step, Notice)] == ["summarised"]
    assert [(len(note.usages), note.fallback_reason) for note in summaries.noted] == [(1, None)]


@pytest.mark.mechanism("fim.guard-summary")
async def test_a_failing_summary_model_is_called_once_per_loop_and_the_extract_is_noted() -> None:
    main = ScriptedModel([calls(("look_up", {"n": 1})), calls(("look_up", {"n": 2})), "Here you are."])
    summaries = Summaries(*[describe_error("auth")] * 9)
    steps, error = await collect_steps(summaries.ask(main, strategy="summarize"))
    assert error is None
    assert text_of(steps) == "Here you are."
    assert len(summaries.model.requests) == 1
    [told] = [step for step in steps if isinstance(step, Notice) and step.kind == "summarised"]
    assert "No model's summary: the summary model failed (its key is not accepted)" in told.text


@pytest.mark.mechanism("fim.guard-summary")
@pytest.mark.parametrize("policy", [{"strategy": "checkpoint"}, {"strategy": "truncate"}])
async def test_a_policy_that_never_waits_calls_no_summary_model_in_the_loop(policy: dict[str, Any]) -> None:
    main = ScriptedModel([calls(("look_up", {})), "Here you are."])
    summaries = Summaries("Never asked.")
    steps, error = await collect_steps(summaries.ask(main, **policy))
    assert error is None
    assert summaries.model.requests == []
    assert [step.kind for step in steps if isinstance(step, Notice)] == ["shrunk"]


@pytest.mark.mechanism("agentscope.offload-context")
async def test_the_reminder_names_the_newest_dropped_results_and_how_to_list_the_others() -> None:
    def step(number: int) -> tuple[Message, Message]:
        call = ToolCallPart(f"c{number}", "look_up", json.dumps({"n": number}))
        text = f"Shelf {number}. " + "A line that says nothing. " * 40
        answer = ToolResultPart(f"c{number}", "look_up", text, offload_ref=f"ref-{number:03d}")
        return (
            with_parts(text_message("assistant", ""), (call,)),
            with_parts(text_message("tool", ""), (answer,)),
        )

    context = context_with(FakeTool(), window=16_000)
    transcript = LoopRequest.begin(context)
    for number in range(80):
        transcript = transcript.add_step(step(number))
    fitted = await transcript.fit(None)
    [reminder] = [message for message in fitted.messages if message.kind == "reminder"]
    named = re.findall(r"ref-(\d+)", reminder.text)
    assert len(named) == 7
    kept = [part.offload_ref for message in fitted.messages for part in message.tool_results]
    gone = 80 - len(kept)
    assert named == [f"{number:03d}" for number in range(gone - 7, gone)]
    assert f"{gone - 7} earlier results are stored, too: reference 'list' lists them all." in reminder.text


def test_of_many_stored_results_a_single_line_names_only_how_to_list_them() -> None:
    results = tuple(ToolResultPart(f"c{n}", "look_up", "", offload_ref=f"ref-{n}") for n in range(3))
    [line] = _list_stored([with_parts(text_message("tool", ""), results)], 1)
    assert line.startswith("3 earlier results are stored, too")


async def test_the_earlier_reminder_survives_each_compaction_in_the_loop() -> None:
    reminder = "Done so far:\n- Find a shelf [look_up] → Shelf 7 is free."
    inputs = make_inputs(history_of(4, words=1_800), window=16_000)
    before = Checkpoint("c", "They look for shelves.", -1, 0, 10, reminder=reminder)
    request = LoopRequest.begin(assemble(replace(inputs, checkpoint=before)))
    for number in range(2):
        call = ToolCallPart(f"c{number}", "look_up", "{}")
        answer = ToolResultPart(f"c{number}", "look_up", "word " * 9_000, offload_ref=f"ref-{number}")
        asking = with_parts(text_message("assistant", ""), (call,))
        request = request.add_step([asking, with_parts(text_message("tool", ""), (answer,))])
        request = await request.fit(None)
        [told] = [message.text for message in request.messages if message.kind == "reminder"]
        assert "- Find a shelf [look_up] → Shelf 7 is free." in told
    assert "Message 0 says" in told
