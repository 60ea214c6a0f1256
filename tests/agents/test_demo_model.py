"""The Demo model: honest, deterministic and useful without a key."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from agents.chat_models.demo_model import DemoModel
from agents.plan.prompts import results_message
from agents.plan.run import PlanChanged, PlanReady, PlanRequest, run_plan
from agents.plan.working import BudgetedModel, LoopModels, PlanPorts
from agents.prompts import CONTINUE_PROMPT
from agents.types import ModelRequest, ToolCallDelta, ToolSpec
from memory.budget import TokenBudget
from memory.strategies.protocol import Summary
from memory.summaries.summary import fence, summary_message
from memory.tokens import text_message
from memory.types import ImagePart, Message, TextPart, ToolCallPart, ToolResultPart
from memory.window.policy import ContextPolicy
from tests.agents.asking import SYSTEM, ask_for, collect, end_of, history_of, no_tools, text_of
from tests.memory.summaries import accept_summary, summary_requests

DEMO = DemoModel(pace_s=0)
TOOLS = tuple(ToolSpec(name, "", {}) for name in ("calculator", "clock", "memory_search"))


async def answer_to(text: str, *before: Message) -> str:
    items, error = await collect(DEMO, ask_for(text, *before))
    assert error is None
    return text_of(items)


async def test_the_demo_model_says_that_it_is_no_language_model_and_how_to_get_one() -> None:
    answer = await answer_to("Hello!")
    assert "not a language model" in answer
    assert "OpenAI-compatible" in answer


async def test_the_first_answer_shows_markdown() -> None:
    answer = await answer_to("Hello!")
    assert all(mark in answer for mark in ("```python", "| what |", "**bold**", "1. a list"))


async def test_the_answer_is_streamed_in_words_and_its_usage_is_estimated() -> None:
    items, _ = await collect(DEMO, ask_for("Hello!"))
    assert len(items) > 50
    usage = end_of(items).usage
    assert not usage.exact
    assert usage.input_tokens > 0
    assert usage.output_tokens > 50


async def test_a_quotation_is_never_cut_within_an_identifier() -> None:
    orders = [f"ORD-{71_000 + number}/SN{340_000 + number}" for number in range(40)]
    answer = await answer_to(f"My orders are {', '.join(orders)}.", *history_of(4))
    assert orders[0] in answer
    assert set(re.findall(r"ORD[-\w/]*", answer)) <= set(orders)


async def test_the_same_question_gets_the_same_answer() -> None:
    assert await answer_to("Tell me a joke", *history_of(4)) == await answer_to(
        "Tell me a joke", *history_of(4)
    )


async def test_a_question_about_earlier_messages_is_answered_from_the_history() -> None:
    before = (
        text_message("user", "My sister Ada lives in Turin. I like tea."),
        text_message("assistant", "Noted."),
    )
    answer = await answer_to("What did I say about my sister?", *before)
    assert "My sister Ada lives in Turin." in answer
    assert "tea" not in answer


async def test_an_answer_names_the_summary_and_the_recalled_text_as_its_sources() -> None:
    recall = text_message(
        "user", fence("recalled", "2026-05-01\nuser: The budget is 900 EUR."), kind="recall"
    )
    answer = await answer_to(
        "do you remember the budget?", summary_message("They discussed a budget."), recall
    )
    assert "from the summary" in answer
    assert "recalled from memory" in answer
    assert "900 EUR" in answer


async def test_the_answer_says_if_nothing_was_found() -> None:
    answer = await answer_to("What did I say about Lisbon?", *history_of(4))
    assert "found nothing" in answer


async def test_the_answer_lists_the_contents_of_the_request() -> None:
    answer = await answer_to("Go on", summary_message("Trip to Lisbon in May.\nMore."), *history_of(6))
    assert "| messages of this conversation | 6 |" in answer
    assert "| summary of earlier messages | 1 |" in answer
    assert "The summary begins: “Trip to Lisbon in May.”" in answer


async def test_the_answer_states_the_size_of_an_image() -> None:
    image = Message("user", (TextPart("Look"), ImagePart("f", "image/png", 640, 480)), 770, kind="question")
    items, _ = await collect(DEMO, ModelRequest((text_message("system", "S"), *history_of(2), image), 100))
    assert "640 × 480" in text_of(items)


async def test_a_continued_answer_starts_exactly_where_it_stopped() -> None:
    whole = await answer_to("Hello!")
    rest = await answer_to(
        CONTINUE_PROMPT, text_message("user", "Hello!"), text_message("assistant", whole[:100])
    )
    assert whole[:100] + rest == whole


async def test_summaries_are_accepted_and_keep_the_facts() -> None:
    messages = (
        text_message(
            "user", "Invoice INV-2041 of 1,250.00 EUR is due on 2026-12-01. It rains. " + "Some filler. " * 40
        ),
        text_message("assistant", "Good to know. " + "Filler again and again. " * 40),
    )
    policy = ContextPolicy(summary_max_tokens=128)
    [request] = summary_requests(
        messages, previous="The user is called Ada.", policy=policy, window=TokenBudget(32_000, 4_000, 0)
    )
    asked = ModelRequest(request.messages("The user is called Ada."), request.max_output_tokens)
    items, _ = await collect(DEMO, asked)
    accepted = accept_summary(
        text_of(items), source=messages, previous="The user is called Ada.", policy=policy
    )
    assert isinstance(accepted, Summary)
    assert "INV-2041" in accepted.text
    assert "Ada" in accepted.text
    assert "<conversation>" not in accepted.text


@pytest.mark.parametrize(
    ("question", "name", "arguments"),
    [
        ("What is 12 × 34.5?", "calculator", {"expression": "12 * 34.5"}),
        ("1,234 + 5 =", "calculator", {"expression": "1234 + 5"}),
        ("calculate 15% of 80", "calculator", {"expression": "15 / 100 * 80"}),
        ("How much is sqrt(2) ^ 2?", "calculator", {"expression": "sqrt(2) ** 2"}),
        ("What time is it?", "clock", {}),
        ("what day is today?", "clock", {}),
        ("What's the date?", "clock", {}),
        ("Please search my memory for the budget!", "memory_search", {"query": "the budget"}),
    ],
)
async def test_a_question_leads_to_a_call_of_the_matching_tool(
    question: str, name: str, arguments: dict[str, str]
) -> None:
    items, _ = await collect(DEMO, replace(ask_for(question), tools=TOOLS))
    [call] = [item for item in items if isinstance(item, ToolCallDelta)]
    assert (call.name, json.loads(call.arguments)) == (name, arguments)
    assert end_of(items).reason == "tool_calls"


@pytest.mark.parametrize(
    "question",
    [
        "What did I say about the time?",
        "When is 2026-11-21?",
        "2026-11-21",
        "What is 42?",
        "I have 3 cats + 4 dogs",
        "What time did we agree on?",
        "Call +49 30 1234",
    ],
)
async def test_other_questions_lead_to_no_tool_call(question: str) -> None:
    items, _ = await collect(DEMO, replace(ask_for(question), tools=TOOLS))
    assert not [item for item in items if isinstance(item, ToolCallDelta)]


async def test_a_tool_that_is_not_offered_is_not_called() -> None:
    items, _ = await collect(DEMO, ask_for("What is 12 * 34?"))
    assert end_of(items).reason == "stop"


async def test_the_answer_shows_the_tool_call_and_its_result() -> None:
    asked = ask_for("What is 2 * 3?")
    call = ToolCallPart("c1", "calculator", '{"expression": "2 * 3"}')
    result = ToolResultPart("c1", "calculator", "2 * 3 = 6")
    steps = (Message("assistant", (call,), 5), Message("tool", (result,), 5))
    items, _ = await collect(DEMO, replace(asked, messages=(*asked.messages, *steps), tools=TOOLS))
    said = text_of(items)
    assert "`calculator`" in said
    assert "> 2 * 3 = 6" in said
    assert "chose it by the words of your question" in said
    assert "| calls of tools and their results | 2 |" in said


async def test_in_plan_mode_each_part_becomes_a_step_and_a_last_step_combines_them() -> None:
    model = DemoModel(pace_s=0)
    rules = BudgetedModel(model, ContextPolicy(), TokenBudget(32_000, 4_000, 1_000))
    models = LoopModels(rules, rules, "Be kind.", PlanPorts(lambda *_: None, lambda _: None, no_tools))
    question = text_message(
        "user", "How large is Lisbon? How old is Porto? Which is warmer?", kind="question"
    )
    items = [item async for item in run_plan(models, PlanRequest(question, (), "Be kind.", 27_000))]
    plan = next(item for item in items if isinstance(item, PlanChanged)).steps
    assert [(step.title, step.dependencies) for step in plan] == [
        ("How large is Lisbon?", ()),
        ("How old is Porto?", ()),
        ("Which is warmer?", ()),
        ("Put together", ("s1", "s2", "s3")),
    ]
    assert isinstance(items[-1], PlanReady)
    note = results_message(items[-1].reports, "")
    said, _ = await collect(model, ModelRequest((SYSTEM, note, question), 4_000))
    assert "**How old is Porto?** (done)" in text_of(said)
    assert "results of s1, s2, s3" in text_of(said)
    assert "can count words and not think" in text_of(said)
