"""The answer loop without tools: streaming, retries, overflows, and no text sent twice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from agents.chat_models.error_mapping import describe_error, map_error
from agents.errors import ModelError, ModelErrorCategory
from agents.loop.react import CallFinished, Notice, run_react
from agents.types import FinishReason, ReasoningDelta, TextDelta, TokenUsage, ToolCallDelta
from memory.tokens import text_message
from memory.types import Checkpoint
from tests.agents.asking import assemble, collect_steps, history_of, make_inputs, text_of
from tests.agents.scripted_model import Said, ScriptedModel

CONTEXT = assemble(make_inputs(history_of(4)))


@dataclass
class Clock:
    """Replaces sleep: returns at once and records the pauses."""

    pauses: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def notices_in(steps: list[object]) -> list[str]:
    return [step.kind for step in steps if isinstance(step, Notice)]


async def test_text_and_reasoning_are_passed_on_and_the_call_is_counted() -> None:
    model = ScriptedModel([Said("The answer.", items=(ReasoningDelta("Hm."),), usage=TokenUsage(90, 5, 40))])
    steps, error = await collect_steps(run_react(model, CONTEXT))
    assert error is None
    assert steps[0] == ReasoningDelta("Hm.")
    assert text_of(steps) == "The answer."
    assert steps[-1] == CallFinished(TokenUsage(90, 5, 40), "stop", CONTEXT)


async def test_the_model_gets_the_request_of_the_context() -> None:
    model = ScriptedModel()
    await collect_steps(run_react(model, CONTEXT))
    assert model.requests == [CONTEXT.request]


@pytest.mark.mechanism("fim.guard")
async def test_a_request_over_budget_is_shortened_before_the_call_and_keeps_the_question() -> None:
    recall = text_message("user", "recalled words " * 4_000, kind="recall")
    context = replace(assemble(make_inputs(history_of(8), window=8_000)), recall=recall)
    assert context.total_tokens > context.budget_tokens
    model = ScriptedModel()
    steps, _ = await collect_steps(run_react(model, context))
    assert notices_in(steps) == ["shrunk"]
    [request] = model.requests
    assert sum(message.tokens for message in request.messages) <= context.budget_tokens
    assert request.messages[-1] == context.view.question


@pytest.mark.parametrize("category", ["connection", "server", "timeout", "rate_limit"])
async def test_a_transient_error_is_retried_once_with_a_notice(category: ModelErrorCategory) -> None:
    clock = Clock()
    model = ScriptedModel([describe_error(category), "Fine now."])
    steps, error = await collect_steps(run_react(model, CONTEXT, sleep=clock.sleep))
    assert error is None
    [told] = [step.text for step in steps if isinstance(step, Notice)]
    assert told == f"{describe_error(category).message.partition(';')[0]}; trying once more."
    assert notices_in(steps) == ["retrying"]
    assert text_of(steps) == "Fine now."
    assert clock.pauses == [1.0]


async def test_a_retry_waits_as_long_as_the_provider_asks() -> None:
    clock = Clock()
    model = ScriptedModel([describe_error("rate_limit", retry_after_s=6.0), "Fine now."])
    await collect_steps(run_react(model, CONTEXT, sleep=clock.sleep))
    assert clock.pauses == [6.0]


async def test_a_wait_too_long_for_a_user_fails_at_once() -> None:
    clock = Clock()
    model = ScriptedModel([describe_error("rate_limit", retry_after_s=60.0)])
    steps, error = await collect_steps(run_react(model, CONTEXT, sleep=clock.sleep))
    assert error is not None
    assert error.category == "rate_limit"
    assert (steps, clock.pauses) == ([], [])


async def test_a_transient_error_that_occurs_twice_fails_the_answer() -> None:
    model = ScriptedModel(default=describe_error("connection"))
    _, error = await collect_steps(run_react(model, CONTEXT, sleep=Clock().sleep))
    assert error is not None
    assert error.category == "connection"
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    "errors",
    [
        [describe_error("server"), describe_error("connection")],
        [describe_error("timeout"), map_error(503, "Overloaded")],
        [map_error(529, "Overloaded"), describe_error("rate_limit")],
        [map_error(503, "Overloaded"), map_error(529, "Overloaded")],
    ],
    ids=lambda errors: " then ".join(str(error.status or error.category) for error in errors),
)
async def test_errors_of_different_kinds_are_retried_separately(errors: list[ModelError]) -> None:
    clock = Clock()
    model = ScriptedModel([*errors, "Fine now."])
    steps, error = await collect_steps(run_react(model, CONTEXT, sleep=clock.sleep))
    assert error is None
    assert text_of(steps) == "Fine now."
    assert clock.pauses == [1.0, 2.0]


async def test_no_mixture_of_errors_gets_a_fourth_attempt() -> None:
    kinds = [describe_error("server"), describe_error("connection"), describe_error("timeout"), "Too late."]
    model = ScriptedModel(kinds)
    _, error = await collect_steps(run_react(model, CONTEXT, sleep=Clock().sleep))
    assert error is not None
    assert error.category == "timeout"
    assert len(model.requests) == 3


@pytest.mark.parametrize("status", [503, 529])
async def test_an_overloaded_server_gets_three_attempts_with_longer_pauses(status: int) -> None:
    clock = Clock()
    model = ScriptedModel([map_error(status, "Overloaded"), map_error(status, "Overloaded"), "Fine now."])
    steps, error = await collect_steps(run_react(model, CONTEXT, sleep=clock.sleep))
    assert error is None
    assert text_of(steps) == "Fine now."
    assert clock.pauses == [1.0, 2.0]
    down = ScriptedModel(default=map_error(status, "Overloaded"))
    _, error = await collect_steps(run_react(down, CONTEXT, sleep=clock.sleep))
    assert error is not None
    assert len(down.requests) == 3


@pytest.mark.parametrize(
    "category", ["auth", "not_found", "quota", "bad_request", "bad_response", "content_filter"]
)
async def test_a_permanent_error_is_not_retried(category: ModelErrorCategory) -> None:
    model = ScriptedModel([describe_error(category)])
    _, error = await collect_steps(run_react(model, CONTEXT, sleep=Clock().sleep))
    assert error is not None
    assert error.category == category
    assert len(model.requests) == 1


async def test_an_error_after_the_first_word_is_not_retried() -> None:
    model = ScriptedModel([Said("Half an", error=describe_error("server")), "Never asked."])
    steps, error = await collect_steps(run_react(model, CONTEXT, sleep=Clock().sleep))
    assert text_of(steps) == "Half an"
    assert error is not None
    assert len(model.requests) == 1


@pytest.mark.mechanism("digitorn.emergency", "cowagent.overflow-caps")
async def test_an_overflow_is_retried_with_about_half_of_the_request() -> None:
    context = assemble(make_inputs(history_of(200, words=60)))
    model = ScriptedModel([describe_error("overflow"), "Fine now."])
    steps, error = await collect_steps(run_react(model, context))
    assert error is None
    assert notices_in(steps) == ["shrunk"]
    first, second = (sum(message.tokens for message in request.messages) for request in model.requests)
    assert second <= first * 0.55
    assert model.requests[1].messages[-1] == context.view.question
    assert steps[-1].context.total_tokens < context.total_tokens


async def test_a_retry_fits_the_window_that_the_provider_names() -> None:
    context = assemble(make_inputs(history_of(200, words=60)))
    model = ScriptedModel([describe_error("overflow", window_tokens=4_096), "Fine now."])
    await collect_steps(run_react(model, context))
    asked = model.requests[1]
    assert sum(message.tokens for message in asked.messages) + asked.max_output_tokens <= 4_096


@pytest.mark.mechanism("cowagent.overflow-question")
async def test_a_second_overflow_is_retried_with_only_the_summary_and_the_question() -> None:
    checkpoint = Checkpoint("c1", "Ada plans a trip to Lisbon.", 9, 10, 8)
    messages = tuple(message for message in history_of(60, words=60) if (message.position or 0) > 9)
    context = assemble(make_inputs(messages, checkpoint=checkpoint))
    model = ScriptedModel([describe_error("overflow"), describe_error("overflow"), "Fine now."])
    steps, error = await collect_steps(run_react(model, context))
    assert error is None
    assert notices_in(steps) == ["shrunk", "shrunk"]
    system, summary, question = model.requests[2].messages
    assert "Lisbon" in summary.text
    assert (system.role, question.text) == ("system", "What now?")


async def test_repeated_overflows_fail_after_three_attempts() -> None:
    model = ScriptedModel(default=describe_error("overflow"))
    _, error = await collect_steps(run_react(model, assemble(make_inputs(history_of(60, words=60)))))
    assert error is not None
    assert error.category == "overflow"
    assert len(model.requests) <= 3


async def test_a_window_filled_by_the_prompt_counts_as_an_overflow() -> None:
    full = Said(reason="length", usage=TokenUsage(127_500, 0))
    model = ScriptedModel([full, "Fine now."])
    steps, error = await collect_steps(run_react(model, assemble(make_inputs(history_of(60, words=60)))))
    assert error is None
    assert notices_in(steps) == ["shrunk"]
    assert len([step for step in steps if isinstance(step, CallFinished)]) == 2


async def test_an_answer_without_text_at_the_output_limit_is_reported_as_such() -> None:
    model = ScriptedModel([Said(reason="length", usage=TokenUsage(100, 100))])
    steps, error = await collect_steps(run_react(model, CONTEXT))
    assert error is not None
    assert "output limit" in error.message
    assert isinstance(steps[-1], CallFinished)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_blank_lines_do_not_count_as_an_answer(reason: FinishReason) -> None:
    model = ScriptedModel([Said(items=(TextDelta("\n\n"),), reason=reason, usage=TokenUsage(100, 100))])
    _, error = await collect_steps(run_react(model, CONTEXT))
    assert error is not None
    model = ScriptedModel([Said(items=(TextDelta("\n\n"),), error=describe_error("server")), "Fine now."])
    steps, error = await collect_steps(run_react(model, CONTEXT, sleep=Clock().sleep))
    assert (error, text_of(steps)) == (None, "\n\nFine now."), "nothing is said twice"


async def test_an_answer_removed_by_the_content_filter_is_reported_as_such() -> None:
    model = ScriptedModel([Said(reason="content_filter")])
    _, error = await collect_steps(run_react(model, CONTEXT))
    assert error is not None
    assert error.category == "content_filter"


async def test_a_call_without_any_offered_tools_is_an_error() -> None:
    model = ScriptedModel([Said(items=(ToolCallDelta(0, "c", "rm", "{}"),), reason="tool_calls")])
    _, error = await collect_steps(run_react(model, CONTEXT))
    assert error is not None
    assert error.category == "bad_response"
