"""The model receives a stored summary word for word, even in the smallest windows."""

from __future__ import annotations

import pytest

from memory.budget import TokenBudget
from memory.strategies.protocol import Summary
from memory.tokens import estimate_text, text_message
from memory.types import Checkpoint
from memory.window.cut import summary_limit
from memory.window.policy import DEFAULT_POLICY
from memory.window.view import ViewInputs, fit_view
from tests.acceptance.conversations import long_history
from tests.memory.summaries import accept_summary


@pytest.mark.parametrize("window", [6_000, 8_000, 16_000, 32_000, 128_000])
def test_a_stored_summary_is_in_the_view_uncut(window: int) -> None:
    budget = TokenBudget(window, window // 4)
    limit = summary_limit(DEFAULT_POLICY, budget.input_tokens)
    policy = DEFAULT_POLICY.model_copy(update={"summary_max_tokens": limit})
    history = [text_message(note["role"], note["content"]) for note in long_history(400)]
    answer = " ".join(f"They noted item {number} on day {number}." for number in range(limit // 12))
    accepted = accept_summary(answer, source=history, previous="", policy=policy)
    assert isinstance(accepted, Summary), accepted
    assert accepted.tokens > estimate_text(answer), "facts that were left out are added"

    view = fit_view(
        ViewInputs(
            system=text_message("system", "You are helpful."),
            checkpoint=Checkpoint("c", accepted.text, 399, 400, accepted.tokens),
            messages=[],
            question=text_message("user", "And now?", kind="question"),
            policy=DEFAULT_POLICY,
            budget=budget,
        )
    )
    assert view.summary is not None
    assert accepted.text in view.summary.text
