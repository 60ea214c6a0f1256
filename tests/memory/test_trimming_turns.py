"""CowAgent's trimming of turns in whole views: the turn limit, and the token budget with few and with many turns."""

from __future__ import annotations

import pytest

from memory.budget import TokenBudget
from memory.truncate import TRUNCATED
from memory.types import Message
from memory.window.policy import ContextPolicy
from memory.window.view import View
from tests.memory.histories import call, reply, result, stored, user
from tests.memory.views import fit

TURNS = ContextPolicy(strategy="turns", max_turns=20, recall_budget=0)
SMALL = TokenBudget(8_000, 1_000, 500)


def searching_turns(count: int, words: int = 20, found: int = 20) -> list[Message]:
    return stored(
        [
            each
            for turn in range(count)
            for each in (
                user(f"Question {turn}: " + "why " * words),
                call(f"c{turn}"),
                result(f"c{turn}", "found it " * found),
                reply(f"Answer {turn}: " + "because " * words),
            )
        ]
    )


def questions_in(view: View) -> list[str]:
    return [each.text.split(":")[0] for each in view.history if each.role == "user"]


@pytest.mark.mechanism("cowagent.half-again")
def test_five_or_more_turns_over_the_budget_lose_their_older_half_until_they_fit() -> None:
    before, halvings = 0, 0
    for count in range(1, 25):
        view = fit(searching_turns(count, words=200), budget=SMALL, policy=TURNS)
        kept = questions_in(view)
        assert kept[-1] == f"Question {count - 1}"
        if len(kept) <= before:
            assert before + 1 >= 5
            # The half was dropped at this question, or at the one before, which is longer than ours.
            assert len(kept) in {(before + 1) // 2, before // 2 + 1}, "the oldest half left"
            assert view.dropped is not None
            halvings += 1
        before = len(kept)
    assert halvings > 2


@pytest.mark.mechanism("cowagent.reduce")
def test_fewer_than_five_turns_over_the_budget_lose_their_tool_chains() -> None:
    history = searching_turns(4, found=680)
    assert any(each.role == "tool" for each in fit(history[:-4], budget=SMALL, policy=TURNS).history)
    view = fit(history, budget=SMALL, policy=TURNS)
    assert questions_in(view) == ["Question 0", "Question 1", "Question 2", "Question 3"]
    assert not any(each.role == "tool" or each.tool_calls for each in view.history)
    assert view.dropped is None


@pytest.mark.mechanism("cowagent.full-turns")
@pytest.mark.parametrize(("limit", "whole"), [(6, 3), (20, 3), (30, 5)])
def test_a_sixth_of_the_turn_limit_and_at_least_three_turns_keep_their_tool_chains(
    limit: int, whole: int
) -> None:
    """The border moves in steps so that the prefix stays cached, so up to twice as many turns keep their chains."""
    view = fit(searching_turns(limit), policy=ContextPolicy(strategy="turns", max_turns=limit))
    chains = sum(each.role == "tool" for each in view.history)
    assert whole <= chains <= 2 * whole
    assert view.history[-2].role == "tool", "the newest ones"


@pytest.mark.mechanism("cowagent.summary-joins")
def test_the_summary_of_dropped_turns_precedes_the_first_kept_message() -> None:
    view = fit(searching_turns(21), policy=TURNS)
    assert questions_in(view)[0] == "Question 11"
    assert [each.kind for each in view.messages()[:3]] == ["message", "summary", "message"]
    assert view.messages()[2].text.startswith("Question 11")


@pytest.mark.mechanism("cowagent.old-results")
def test_a_result_of_an_earlier_turn_keeps_head_and_tail_in_20_000_characters() -> None:
    history = stored([user("a"), call("1"), result("1", "HEAD" + "x" * 30_000 + "TAIL"), reply("b")])
    text = fit(history, policy=TURNS).history[2].tool_results[0].text
    assert text.startswith("HEAD")
    assert text.endswith("TAIL")
    assert TRUNCATED in text
    assert len(text) <= 20_000
