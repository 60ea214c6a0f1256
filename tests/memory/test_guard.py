from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from memory.budget import TokenBudget
from memory.errors import ContextError, QuestionTooLarge, SystemPromptTooLarge
from memory.summaries.reminder import DIRECT_TOOLS, ToolNote, build_reminder
from memory.summaries.summary import EARLIER_TRUNCATED, summary_message
from memory.tokens import Calibration, text_message, total_tokens
from memory.truncate import TRUNCATED
from memory.types import Message
from memory.window.guard import ContextGuard, Fits, NeedsCompaction
from memory.window.policy import DEFAULT_POLICY, ContextPolicy
from tests.memory.histories import (
    budgets,
    calibrations,
    call,
    histories,
    plain_turns,
    policies,
    questions,
    reply,
    result,
    systems,
    user,
)
from tests.memory.views import assert_no_orphans, place_answer

SYSTEM = text_message("system", "You are helpful.")
SMALL = TokenBudget(8_000, 1_000, 500)
ASKED = replace(user("What did the searches find?"), kind="question", pinned=True)


def steps(count: int, words: int = 300) -> list[Message]:
    """Return the tool steps of a run, each with another fact."""
    return [
        each
        for step in range(count)
        for each in (
            call(f"s{step}"),
            result(f"s{step}", f"Order A-{step} costs ${step}99. " + "and so on " * words),
        )
    ]


def compact(guard: ContextGuard, messages: Sequence[Message]) -> NeedsCompaction:
    need = guard.check(messages)
    assert isinstance(need, NeedsCompaction)
    return need


@pytest.mark.mechanism("fim.guard", "agentscope.check")
def test_a_request_that_fits_is_returned_unchanged() -> None:
    messages = (SYSTEM, *plain_turns(2), ASKED)
    fits = ContextGuard(DEFAULT_POLICY, TokenBudget()).check(messages)
    assert fits == Fits(messages)


@given(first=histories(), more=st.integers(1, 4), policy=policies, budget=budgets(), calibration=calibrations)
@settings(deadline=None)
def test_skipping_messages_that_were_checked_before_gives_the_same_result(
    first: list[Message], more: int, policy: ContextPolicy, budget: TokenBudget, calibration: Calibration
) -> None:
    guard = ContextGuard(policy, budget, calibration)
    try:
        passed = guard.check((SYSTEM, *first, ASKED))
        assume(isinstance(passed, Fits) and not passed.was_truncated)
        grown = (*passed.messages, *steps(more, words=2_000))
        whole = guard.check(grown)
    except ContextError:
        reject()
    assert guard.check(grown, len(passed.messages)) == whole


@pytest.mark.mechanism("fim.message-limit")
def test_an_overlong_message_is_cut_but_never_the_question() -> None:
    long = "word " * 20_000
    question = replace(ASKED, parts=user(long).parts, tokens=user(long).tokens)
    fits = ContextGuard(DEFAULT_POLICY, TokenBudget()).check([SYSTEM, user("a"), reply(long), question])
    assert isinstance(fits, Fits)
    assert fits.messages[2].text.endswith(TRUNCATED)
    assert fits.messages[3].text == long


@pytest.mark.mechanism("cowagent.old-results")
def test_an_old_result_keeps_head_and_tail_and_a_current_one_stays_whole() -> None:
    long = "HEAD" + "x" * 30_000 + "TAIL"
    old = [user("a"), call("1"), result("1", long), reply("b")]
    new = [call("2"), result("2", long)]
    fits = ContextGuard(DEFAULT_POLICY, TokenBudget()).check([SYSTEM, *old, ASKED, *new])
    assert isinstance(fits, Fits)
    first, second = (each.tool_results[0].text for each in fits.messages if each.role == "tool")
    assert len(first) <= 20_000
    assert first.startswith("HEAD")
    assert first.endswith("TAIL")
    assert second == long


@pytest.mark.mechanism("fim.compact-groups", "holmes.threshold")
def test_over_budget_the_guard_replaces_the_oldest_messages_by_a_summary() -> None:
    guard = ContextGuard(DEFAULT_POLICY, SMALL)
    messages = [SYSTEM, *plain_turns(3), ASKED, *steps(18)]
    need = compact(guard, messages)
    assert need.to_summarise[0] == messages[1]
    done = place_answer(guard, need, "Eighteen orders were looked up; the goal is the sum of their prices.")
    assert done[0] == SYSTEM
    assert "Summary of" in done[1].text
    assert "Eighteen orders" in done[1].text
    assert ASKED in done
    assert total_tokens(done) < total_tokens(messages)
    assert isinstance(guard.check(done), Fits)


def test_the_next_summary_includes_the_previous_one() -> None:
    guard = ContextGuard(DEFAULT_POLICY, SMALL)
    need = compact(guard, [SYSTEM, summary_message("Ada wants the cheapest."), ASKED, *steps(18)])
    assert need.previous == "Ada wants the cheapest."
    done = place_answer(guard, need, "Ada wants the cheapest order. A-3 costs $399.")
    assert sum(each.kind == "summary" for each in done) == 1


@pytest.mark.mechanism("ours.extract")
@pytest.mark.parametrize(
    "answer", ["", "   ", "<html>502 Bad Gateway</html>", "blah " * 9_000, "?!" * 400, "\n\n\n"]
)
def test_an_unusable_summary_is_replaced_by_an_extract(answer: str) -> None:
    guard = ContextGuard(DEFAULT_POLICY, SMALL)
    need = compact(guard, [SYSTEM, ASKED, *steps(18)])
    done = place_answer(guard, need, answer)
    assert "An extract of" in done[1].text
    assert "A-0 costs $099" in done[1].text
    assert isinstance(guard.check(done), Fits)


def test_a_reminder_follows_the_summary_and_is_replaced_by_the_next_one() -> None:
    guard = ContextGuard(DEFAULT_POLICY, SMALL)
    reminder = build_reminder([ToolNote("search", "Looks up orders.")], ["found A-1"])
    done = place_answer(guard, compact(guard, [SYSTEM, ASKED, *steps(18)]), "They look up orders.", reminder)
    assert done[2] is reminder
    again = place_answer(guard, compact(guard, [*done, *steps(14)]), "They look up more orders.", reminder)
    assert sum(each.kind == "reminder" for each in again) == 1


def test_a_system_note_of_a_hook_stays_before_the_question() -> None:
    guard = ContextGuard(DEFAULT_POLICY, SMALL)
    note = text_message("system", "Answer in one line.", kind="injected", pinned=True)
    need = compact(guard, [SYSTEM, *plain_turns(3), note, ASKED, *steps(18)])
    done = place_answer(guard, need, "They search.")
    assert [each.kind for each in done[:4]] == ["message", "summary", "injected", "question"]
    again = ContextGuard(ContextPolicy(strategy="truncate"), SMALL).check([*done, *steps(14)])
    assert isinstance(again, Fits)
    assert again.messages.index(ASKED) == again.messages.index(note) + 1 > 1


def test_recalled_text_is_dropped_first() -> None:
    recall = text_message("user", "word " * 3_000, kind="recall")
    messages = [SYSTEM, *plain_turns(3), recall, ASKED, *steps(8)]
    fits = ContextGuard(DEFAULT_POLICY, SMALL).check(messages)
    assert isinstance(fits, Fits)
    assert fits.was_truncated
    assert recall not in fits.messages
    assert len(fits.messages) == len(messages) - 1


@pytest.mark.parametrize("policy", [ContextPolicy(strategy="truncate"), ContextPolicy(auto_compact=False)])
def test_without_summaries_the_guard_truncates_and_leaves_a_mark(policy: ContextPolicy) -> None:
    fits = ContextGuard(policy, SMALL).check([SYSTEM, *plain_turns(9), ASKED, *steps(18)])
    assert isinstance(fits, Fits)
    assert fits.was_truncated
    assert fits.messages[1].text == EARLIER_TRUNCATED
    assert total_tokens(fits.messages) <= SMALL.input_tokens


def test_a_pinned_message_sent_during_the_run_is_kept() -> None:
    injected = replace(user("only those above $500"), kind="injected", pinned=True)
    guard = ContextGuard(DEFAULT_POLICY, SMALL)
    need = compact(guard, [SYSTEM, ASKED, *steps(4), injected, *steps(16)])
    assert injected in place_answer(guard, need, "They look up orders.")


def test_one_huge_result_is_shortened_instead_of_dropped() -> None:
    guard = ContextGuard(ContextPolicy(message_char_limit=1_000_000), SMALL)
    fits = guard.check([SYSTEM, ASKED, call("1"), result("1", "HEAD " + "and so on " * 20_000 + " TAIL")])
    assert isinstance(fits, Fits)
    assert "HEAD" in fits.messages[-1].tool_results[0].text
    assert_no_orphans(fits.messages)


def test_a_request_that_cannot_fit_is_refused() -> None:
    huge = user("word " * 20_000)
    with pytest.raises(QuestionTooLarge):
        ContextGuard(DEFAULT_POLICY, SMALL).check([SYSTEM, replace(huge, kind="question")])
    with pytest.raises(SystemPromptTooLarge):
        ContextGuard(DEFAULT_POLICY, SMALL, tools_tokens=20_000).check([SYSTEM, ASKED])


@pytest.mark.mechanism("fim.compact-then-truncate", "ours.invariants")
@settings(max_examples=60, deadline=None)
@given(
    histories(10),
    histories(4),
    questions,
    systems,
    policies,
    budgets(),
    calibrations,
    st.sampled_from(("A good summary.", "")),
)
def test_every_guarded_request_keeps_the_invariants(
    history: list[Message],
    steps_after: list[Message],
    question: Message,
    system: Message,
    policy: ContextPolicy,
    budget: TokenBudget,
    calibration: Calibration,
    answer: str,
) -> None:
    question = replace(question, kind="question", pinned=True)
    after = [each for each in steps_after if each.role != "user"]
    guard = ContextGuard(policy, budget, calibration)
    try:
        checked = guard.check([system, *history, question, *after])
    except ContextError:
        assert calibration.apply(question.tokens) > budget.input_after(calibration.apply(system.tokens))
        return
    done = checked.messages if isinstance(checked, Fits) else place_answer(guard, checked, answer)
    assert_fits(done, system, question, budget, calibration)
    assert isinstance(guard.check(done), Fits), "one compaction is enough"


def assert_fits(
    messages: Sequence[Message],
    system: Message,
    question: Message,
    budget: TokenBudget,
    calibration: Calibration,
) -> None:
    assert messages[0] is system
    assert question in messages
    assert_no_orphans(messages)
    system_tokens = calibration.apply(system.tokens)
    total = calibration.apply(total_tokens(messages))
    assert total - system_tokens <= budget.input_after(system_tokens)


@pytest.mark.mechanism("digitorn.reminder")
def test_few_tools_are_listed_with_descriptions_and_many_only_by_category() -> None:
    few = build_reminder([ToolNote(f"tool_{n}", "Does\nthings.") for n in range(DIRECT_TOOLS)])
    many = build_reminder([ToolNote(f"tool_{n}", "Does things.", f"group {n % 3}") for n in range(60)])
    assert few is not None
    assert many is not None
    assert "- tool_3: Does things." in few.text
    assert "Does things." not in many.text
    assert "- group 2: tool_2, tool_5" in many.text
    assert build_reminder([]) is None
