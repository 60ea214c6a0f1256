"""A strategy is one module and its name in the registry; other code needs no change for a new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pytest

from memory.budget import TokenBudget
from memory.strategies import registry
from memory.strategies.checkpoint import CheckpointStrategy
from memory.strategies.protocol import CutReplay, Strategy
from memory.strategies.registry import STRATEGIES, StrategyName, strategy_named
from memory.summaries.summary import read_summary, summary_message
from memory.types import Message
from memory.window.guard import ContextGuard, Fits
from memory.window.policy import ContextPolicy
from tests.memory.histories import plain_turns, user
from tests.memory.views import fit

WINDOW = TokenBudget(16_000, 2_000, 1_000)


def test_every_strategy_name_has_a_strategy() -> None:
    assert set(get_args(StrategyName)) == set(STRATEGIES)


def test_an_unknown_strategy_name_means_the_default() -> None:
    assert strategy_named("retired") is STRATEGIES["checkpoint"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("checkpoint", "Earlier context (7 messages) was summarized by AI."),
        ("truncate", "Earlier context (7 messages) was left out without a summary."),
    ],
)
def test_the_divider_says_whether_messages_were_summarised_or_left_out(name: str, text: str) -> None:
    assert strategy_named(name).divider_text(7) == text


class CountStrategy(CheckpointStrategy):
    """A strategy that replaces everything but the tail by a count of messages."""

    writes_summaries = False

    def plan_cut(self, replay: CutReplay) -> None:
        replay.keep_tail()

    def stand_in(self, previous: str, messages: object, max_tokens: int) -> Message:
        return summary_message(f"{len(messages)} messages left.")  # type: ignore[arg-type]


def test_a_new_strategy_needs_no_change_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    strategies: Mapping[str, Strategy] = {**STRATEGIES, "count": CountStrategy()}
    monkeypatch.setattr(registry, "STRATEGIES", strategies)
    policy = ContextPolicy().model_copy(update={"strategy": "count"})
    view = fit(plain_turns(400), policy=policy, budget=WINDOW)
    assert view.summary is not None
    assert view.dropped is not None
    assert read_summary(view.summary) == f"{view.dropped.message_count} messages left."
    checked = ContextGuard(policy, WINDOW).check([*plain_turns(400), user("And now?")])
    assert isinstance(checked, Fits), "no summary is asked for"
    assert checked.was_truncated
