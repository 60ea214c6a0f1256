"""Retries after an overflow: first about half of the request, then only the summary and the question."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

from agents.requests.context import EMERGENCY_TURNS, AssembledContext
from agents.types import ToolSpec
from memory.budget import TokenBudget
from memory.errors import ContextError
from memory.summaries.summary import read_summary
from memory.tokens import total_tokens
from memory.types import Checkpoint, Message
from memory.window.policy import ContextPolicy
from tests.agents.asking import assemble, make_inputs
from tests.memory.histories import (
    budgets,
    call,
    histories,
    plain_turns,
    policies,
    reply,
    result,
    stored,
    user,
)
from tests.memory.views import assert_no_orphans

BEFORE = Checkpoint("c", "Ada wants the cheapest.", -1, 0, 10)
SEARCH = ToolSpec("search", "Searches.", {})


def sent_of(context: AssembledContext | None) -> tuple[Message, ...]:
    assert context is not None
    return context.request.messages


def test_the_first_retry_sends_about_half_and_the_second_only_summary_and_question() -> None:
    context = assemble(make_inputs(plain_turns(40, words=60), checkpoint=BEFORE))
    first = context.shrunk(None)
    assert first is not None
    assert total_tokens(sent_of(first)) <= total_tokens(context.request.messages) // 2 + 100
    asked = [each for each in sent_of(first) if each.role == "user" and each.kind == "message"]
    assert len(asked) <= EMERGENCY_TURNS
    assert "Ada wants the cheapest." in sent_of(first)[1].text
    second = first.shrunk(None)
    assert [each.kind for each in sent_of(second)] == ["message", "summary", "question"]
    assert "Ada wants the cheapest." in sent_of(second)[1].text
    assert second is not None
    assert second.shrunk(None) is None


def test_a_shrunk_request_keeps_facts_of_dropped_messages_and_a_reminder_of_the_tools() -> None:
    inputs = replace(make_inputs(plain_turns(40)), tools=(SEARCH,))
    first = sent_of(assemble(inputs).shrunk(None))
    assert "costs $" in read_summary(first[1])
    assert first[2].kind == "reminder"
    assert "search" in first[2].text


@pytest.mark.mechanism("digitorn.reminder")
def test_a_reminder_of_many_tools_lists_them_by_server() -> None:
    tools = [
        SEARCH,
        *(ToolSpec(f"{'crm' if n % 2 else 'wiki'}__tool_{n}", "Does it.", {}) for n in range(20)),
    ]
    first = sent_of(assemble(replace(make_inputs(plain_turns(40)), tools=tuple(tools))).shrunk(None))
    assert "- built-in: search\n- crm: crm__tool_1, crm__tool_3, " in first[2].text
    assert "- wiki: wiki__tool_0, " in first[2].text


@pytest.mark.mechanism("cowagent.overflow-caps")
def test_a_shrunk_request_caps_results_and_texts_but_never_the_question() -> None:
    long = "HEAD" + "word " * 6_000
    history = stored([user("a"), call("1"), result("1", long), reply(long)])
    shrunk = sent_of(assemble(make_inputs(history, question=long)).shrunk(None))
    assert shrunk[-1].text == long
    said = [text for each in shrunk[:-1] for text in (each.text, *(one.text for one in each.tool_results))]
    assert all(len(text) <= 10_000 for text in said)


@pytest.mark.mechanism("ours.invariants")
@settings(max_examples=30, deadline=None)
@given(histories(10), policies, budgets())
def test_every_emergency_request_is_valid_and_smaller(
    history: list[Message], policy: ContextPolicy, budget: TokenBudget
) -> None:
    inputs = replace(make_inputs(history), policy=policy, budget=budget)
    try:
        context: AssembledContext | None = assemble(inputs)
    except ContextError:
        assume(False)
    while context is not None:
        before = total_tokens(context.request.messages)
        context = context.shrunk(None)
        if context is None:
            return
        messages = context.request.messages
        assert messages[0] is inputs.system
        assert messages[-1] is inputs.question
        assert_no_orphans(messages)
        assert context.total_tokens <= budget.input_tokens
        assert total_tokens(messages) <= max(before, 1_000)


@pytest.mark.parametrize("named", [None, 40_000])
def test_a_question_larger_than_half_is_sent_without_the_history(named: int | None) -> None:
    inputs = make_inputs(plain_turns(40, words=60), question="word " * 23_000, window=60_000)
    context = assemble(replace(inputs, checkpoint=BEFORE))
    assert context.inputs.question.tokens > context.budget_tokens // 2
    alone = context.shrunk(named)
    assert alone is not None
    assert [each.kind for each in sent_of(alone)] == ["message", "summary", "question"]
    assert alone.total_tokens < context.total_tokens
    assert alone.shrunk(named) is None


def test_tools_larger_than_half_are_sent_with_only_the_question() -> None:
    tools = tuple(ToolSpec(f"tool_{number}", "word " * 250, {}) for number in range(60))
    inputs = replace(make_inputs(plain_turns(40, words=60), window=64_000), tools=tools)
    alone = assemble(inputs).shrunk(32_768)
    assert alone is not None
    assert sent_of(alone)[-1] is inputs.question
    assert alone.total_tokens + alone.request.max_output_tokens <= 32_768


def test_the_same_request_is_not_sent_again() -> None:
    assert assemble(make_inputs(question="word " * 20_000, window=60_000)).shrunk(None) is None
