"""Reminders behind a summary, notes of hooks in a request, and the cooldown between compactions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from memory.budget import TokenBudget
from memory.summaries.reminder import (
    ToolNote,
    build_reminder,
    list_achieved,
    reminder_message,
    shorten_reminder,
    write_reminder,
)
from memory.summaries.summary import EARLIER_TRUNCATED, mark_truncated, summary_message
from memory.tokens import text_message, total_tokens
from memory.types import Checkpoint, Message, ToolCallPart
from memory.window.compaction import PlanInputs, plan_span
from memory.window.policy import ContextPolicy
from memory.window.view import View, ViewInputs, fit_view
from tests.memory.histories import plain_turns

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SYSTEM = text_message("system", "You are helpful.")
ASKED = text_message("user", "What now?", kind="question")
BUDGET = TokenBudget(20_000, 2_000, 2_000)
CHECKPOINT = Checkpoint("c1", "They planned a trip.", 9, 10, 8, reminder="Done so far:\n- x", made_at=NOON)


def dated(messages: list[Message], *, before: int) -> list[Message]:
    """Return the messages with times a minute apart, the last of the first `before` messages at noon."""
    first = NOON - timedelta(minutes=before - 1)
    return [
        replace(message, position=10 + index, created_at=first + timedelta(minutes=index))
        for index, message in enumerate(messages)
    ]


def view_of(
    messages: list[Message], policy: ContextPolicy, checkpoint: Checkpoint | None = CHECKPOINT
) -> View:
    return fit_view(
        ViewInputs(
            system=SYSTEM,
            checkpoint=checkpoint,
            messages=messages,
            question=ASKED,
            policy=policy,
            budget=BUDGET,
        )
    )


@pytest.mark.mechanism("digitorn.reminder")
def test_the_reminder_follows_the_summary_and_its_tokens_are_counted_with_it() -> None:
    view = view_of(dated(plain_turns(2), before=4), ContextPolicy())
    assert [message.kind for message in view.messages()][:3] == ["message", "summary", "reminder"]
    assert "Done so far" in view.messages()[2].text
    assert view.summary is not None
    assert view.reminder is not None
    assert view.parts().summary == view.summary.tokens + view.reminder.tokens
    assert view.parts().total == total_tokens(view.messages())


def test_a_reminder_too_large_for_the_window_loses_its_oldest_lines() -> None:
    lines = [f"line {number} " + "word " * 100 for number in range(20)]
    view = view_of([], ContextPolicy(), replace(CHECKPOINT, reminder=write_reminder([], lines[:8])))
    assert view.reminder is not None
    assert "line 7 " in view.reminder.text
    huge = replace(CHECKPOINT, reminder="Done so far:\n- " + "word " * 5_000)
    assert view_of([], ContextPolicy(), huge).reminder is None
    small = TokenBudget(3_000, 500, 500)
    fitted = fit_view(
        ViewInputs(
            system=SYSTEM,
            checkpoint=replace(CHECKPOINT, reminder=write_reminder([], lines[:8])),
            messages=[],
            question=ASKED,
            policy=ContextPolicy(),
            budget=small,
        )
    )
    assert fitted.reminder is not None
    assert "line 7 " in fitted.reminder.text
    assert "line 1 " not in fitted.reminder.text


@pytest.mark.mechanism("digitorn.hook-inject")
def test_notes_of_hooks_come_directly_before_the_question_and_are_counted() -> None:
    note = text_message("system", "Reminder: be brief.")
    recall = text_message("user", "Recalled.", kind="recall")
    view = fit_view(
        ViewInputs(
            system=SYSTEM,
            checkpoint=None,
            messages=plain_turns(1),
            question=ASKED,
            policy=ContextPolicy(),
            budget=BUDGET,
            notes=(note,),
        )
    )
    assert view.messages(recall)[-3:] == (recall, note, ASKED)
    assert view.messages()[0] is SYSTEM
    assert view.parts(recall).total == total_tokens(view.messages(recall))


@pytest.mark.mechanism("digitorn.cooldown")
def test_the_tail_of_a_compaction_is_not_cut_again_during_the_cooldown() -> None:
    """The tail alone exceeds the trigger, so without a cooldown each turn would compact again."""
    policy = ContextPolicy(trigger=0.05, keep_recent=4, reserve_ratio=0, cooldown_turns=2)
    for asked_since in range(4):
        history = dated(plain_turns(6 + asked_since, words=100), before=12)
        view = view_of(history, policy)
        assert (view.dropped is not None) == (asked_since >= 2), asked_since
    undated = view_of(dated(plain_turns(6, words=100), before=12), policy, replace(CHECKPOINT, made_at=None))
    assert undated.dropped is not None


def test_the_cooldown_is_ignored_if_the_budget_is_full() -> None:
    policy = ContextPolicy(keep_recent=4, cooldown_turns=9)
    view = view_of(dated(plain_turns(900), before=1_800), policy)
    assert view.dropped is not None
    assert view.parts().total <= BUDGET.input_tokens + SYSTEM.tokens


def test_a_plan_ends_at_the_same_position_as_the_cut_of_the_view() -> None:
    policy = ContextPolicy(trigger=0.05, keep_recent=4, reserve_ratio=0, wait_for_summary=True)
    for before in (0, 8, 12, 14, 16):
        history = dated(plain_turns(8, words=100), before=before)
        view = view_of(history, policy)
        plan = plan_span(PlanInputs(history, CHECKPOINT, policy, BUDGET, question_tokens=ASKED.tokens))
        hard = plan.last_position if plan and plan.trigger == "hard" else None
        assert hard == (view.dropped.last_position if view.dropped else None)


def test_strategies_that_wait_or_cut_by_turns_prepare_no_summary_ahead() -> None:
    history = plain_turns(150)
    assert plan_span(PlanInputs(history, None, ContextPolicy(trigger=0.9, soft_trigger=0.1), BUDGET))
    for policy in (
        ContextPolicy(trigger=0.9, soft_trigger=0.1, strategy="summarize"),
        ContextPolicy(trigger=0.9, soft_trigger=0.1, wait_for_summary=True),
        ContextPolicy(trigger=0.9, soft_trigger=0.1, strategy="turns", max_turns=1_000),
    ):
        assert plan_span(PlanInputs(history, None, policy, BUDGET)) is None


def test_the_achievements_are_one_line_per_finished_turn() -> None:
    call = Message("assistant", (ToolCallPart("c", "search", "{}"),), 10)
    turns = [
        text_message("user", "Find\nmy order"),
        call,
        text_message("assistant", "It is A-17."),
        text_message("user", "Never answered"),
    ]
    assert list_achieved(turns) == ["Find my order [search] → It is A-17."]
    many = [message for _ in range(20) for message in turns[:3]]
    assert len(list_achieved(many)) == 8


def test_an_empty_reminder_gives_no_message() -> None:
    assert reminder_message(write_reminder([])) is None


def test_a_truncated_context_is_marked_once() -> None:
    assert mark_truncated("") == EARLIER_TRUNCATED
    assert mark_truncated(mark_truncated("Before.")) == f"Before.\n\n{EARLIER_TRUNCATED}"
    assert summary_message(EARLIER_TRUNCATED).text == EARLIER_TRUNCATED


def test_a_shortened_reminder_loses_achievements_first_and_no_tools() -> None:
    tools = [ToolNote(f"tool_{number}", "Does things.") for number in range(3)]
    whole = build_reminder(tools, [f"Step {number} of the work" for number in range(6)])
    assert whole is not None
    for limit in range(whole.tokens, 0, -1):
        shorter = shorten_reminder(whole, limit)
        if shorter is None:
            break
        assert shorter.tokens <= limit
        assert all(f"- {tool.name}: Does things." in shorter.text for tool in tools)
        assert ("Done so far:" in shorter.text) == ("Step 5" in shorter.text)
    assert limit < whole.tokens // 2
