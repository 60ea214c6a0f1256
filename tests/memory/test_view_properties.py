"""Invariants of every view, for any history, policy and window."""

from __future__ import annotations

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from memory.budget import TokenBudget
from memory.errors import QuestionTooLarge, SystemPromptTooLarge
from memory.long_term.profile import profile_message
from memory.strategies.protocol import Summary
from memory.summaries.extractive import extract_summary
from memory.tokens import Calibration, estimate_text, total_tokens
from memory.truncate import PINNED_SHARE, is_fixed
from memory.turns import repair_tool_calls
from memory.types import Checkpoint, Message
from memory.window.compaction import PlanInputs, plan_span
from memory.window.policy import ContextPolicy
from tests.memory.histories import budgets, calibrations, histories, policies, questions, spoken, systems
from tests.memory.summaries import accept_summary
from tests.memory.views import assert_no_orphans, fit

profiles = st.sampled_from(
    ("", "- Lives in Lisbon.", "\n".join(f"- Fact {number}." for number in range(400)))
)


@pytest.mark.mechanism("fim.question", "ours.invariants", "ours.profile")
@settings(max_examples=100, deadline=None)
@given(histories(), questions, systems, policies, budgets(), calibrations, profiles)
def test_every_view_keeps_the_invariants(
    history: list[Message],
    question: Message,
    system: Message,
    policy: ContextPolicy,
    budget: TokenBudget,
    calibration: Calibration,
    profile: str,
) -> None:
    try:
        view = fit(
            history,
            question=question,
            system=system,
            policy=policy,
            budget=budget,
            calibration=calibration,
            profile=profile_message(profile, policy.profile_limit(budget)),
        )
    except (QuestionTooLarge, SystemPromptTooLarge) as error:
        event(type(error).__name__)
        room = budget.input_after(calibration.apply(system.tokens))
        assert calibration.apply(question.tokens) > room, "refused although the question fits"
        return
    event("cut" if view.dropped else "whole")
    messages = view.messages()
    assert messages[0] is system
    assert messages[-1] is question
    assert view.profile is None or messages[1] is view.profile
    fixed = [each for each in messages if is_fixed(each)]
    system_total = calibration.apply(total_tokens(fixed))
    total = calibration.apply(sum(each.tokens for each in messages))
    assert total - system_total <= budget.input_after(system_total)
    assert total + budget.output_for(total) <= budget.context_size
    said = [each.position or 0 for each in view.history if each.role != "tool"]
    assert said == sorted(set(said)), "only a result moves, up to its call"
    assert_no_orphans(messages)
    assert view.parts().total == total
    assert view.recall_tokens >= 0
    assert total - system_total + view.recall_tokens <= budget.input_after(system_total) + 1
    if view.dropped:
        assert messages[len(fixed)].role == "user"


@pytest.mark.mechanism("ours.pins")
@settings(max_examples=50, deadline=None)
@given(histories(), st.data(), policies, budgets())
def test_pins_covered_by_a_checkpoint_are_in_the_view_in_order_and_take_at_most_half(
    history: list[Message], data: st.DataObject, policy: ContextPolicy, budget: TokenBudget
) -> None:
    """Loading returns the pinned messages that the checkpoint covers, then all messages after it."""
    covered = data.draw(st.integers(0, len(history))) - 1
    behind = [each for each in spoken(history[: covered + 1]) if each.pinned]
    loaded = [*behind, *history[covered + 1 :]]
    checkpoint = Checkpoint("c", "Before: order A-17.", covered, covered + 1, 10) if covered >= 0 else None
    view = fit(loaded, checkpoint=checkpoint, policy=policy, budget=budget)
    messages = view.messages()
    said = [each.position for each in view.history if each.role != "tool"]
    assert said == sorted(set(said))
    assert_no_orphans(messages)
    total = total_tokens(messages)
    assert total <= budget.input_tokens
    assert view.original_count == len(history)
    if not view.dropped:
        assert {each.position for each in behind} <= set(said)
    held = [each for each in view.history if each.position in {pin.position for pin in behind}]
    assert view.dropped is None or total_tokens(held) <= budget.input_tokens * PINNED_SHARE


@pytest.mark.mechanism("ours.tail")
@settings(max_examples=30, deadline=None)
@given(histories(), policies, budgets())
def test_a_view_never_loses_the_newest_messages(
    history: list[Message], policy: ContextPolicy, budget: TokenBudget
) -> None:
    assume(policy.turn_limit == 0)
    view = fit(history, policy=policy, budget=budget)
    kept = {each.position for each in view.history}
    newest = repair_tool_calls(history)[-min(policy.keep_recent, 4) :] if policy.keep_recent else ()
    assert {each.position for each in spoken(newest)} <= kept


@pytest.mark.mechanism("ours.tail")
@settings(max_examples=30, deadline=None)
@given(histories(), policies, budgets(), st.sampled_from(("good", "extract", "none")))
def test_compaction_always_ends(
    history: list[Message], policy: ContextPolicy, budget: TokenBudget, summariser: str
) -> None:
    """Each compaction covers new messages, so after at most one for each message no more is planned."""
    checkpoint: Checkpoint | None = None
    for _ in range(len(history) + 1):
        covered = checkpoint.last_position if checkpoint else -1
        loaded = [each for each in history if (each.position or 0) > covered]
        plan = plan_span(PlanInputs(loaded, checkpoint, policy, budget))
        if plan is None:
            break
        assert plan.first_position == covered + 1
        assert plan.last_position >= plan.first_position
        assert plan.message_count + plan.kept_count == len(loaded)
        checkpoint = _summarise(loaded, checkpoint, plan.last_position, policy, summariser)
    assert plan is None


def _summarise(
    loaded: list[Message], checkpoint: Checkpoint | None, last: int, policy: ContextPolicy, summariser: str
) -> Checkpoint:
    span = [each for each in loaded if (each.position or 0) <= last]
    previous = checkpoint.summary if checkpoint else ""
    answer = {"good": "They talked about orders.", "extract": "", "none": ""}[summariser]
    accepted = accept_summary(answer, source=span, previous=previous, policy=policy)
    extract = extract_summary(span, policy.summary_max_tokens) if summariser == "extract" else previous
    text = accepted.text if isinstance(accepted, Summary) else extract
    count = (checkpoint.message_count if checkpoint else 0) + len(span)
    return Checkpoint("c", text, last, count, estimate_text(text))
