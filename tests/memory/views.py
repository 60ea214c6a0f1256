"""Build views in tests, and check the order of calls and results that providers require."""

from __future__ import annotations

from collections.abc import Sequence

from memory.budget import TokenBudget
from memory.tokens import UNCALIBRATED, Calibration, text_message
from memory.types import Checkpoint, Message
from memory.window.loading import NOTHING_LEFT_OUT, LeftOut
from memory.window.policy import DEFAULT_POLICY, ContextPolicy
from memory.window.view import View, ViewInputs, fit_view

NO_SYSTEM = text_message("system", "You are helpful.")


def fit(
    messages: Sequence[Message],
    *,
    question: Message | None = None,
    system: Message = NO_SYSTEM,
    checkpoint: Checkpoint | None = None,
    policy: ContextPolicy = DEFAULT_POLICY,
    budget: TokenBudget = TokenBudget(),
    tools_tokens: int = 0,
    left_out: LeftOut = NOTHING_LEFT_OUT,
    calibration: Calibration = UNCALIBRATED,
    profile: Message | None = None,
) -> View:
    return fit_view(
        ViewInputs(
            system=system,
            checkpoint=checkpoint,
            messages=messages,
            question=question or text_message("user", "What now?"),
            policy=policy,
            budget=budget,
            calibration=calibration,
            tools_tokens=tools_tokens,
            left_out=left_out,
            profile=profile,
        )
    )


def assert_no_orphans(messages: Sequence[Message]) -> None:
    """Assert that each call is followed directly by its results, and that each result has its call."""
    waiting: list[str] = []
    for each in messages:
        if each.role == "tool":
            for answered in each.tool_results:
                assert answered.call_id in waiting
                waiting.remove(answered.call_id)
        else:
            assert not waiting, "a call without its result"
            waiting = [made.call_id for made in each.tool_calls]
    assert not waiting
