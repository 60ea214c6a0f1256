"""Build views in tests, and check the order of calls and results that providers require."""

from __future__ import annotations

from collections.abc import Sequence

from memory.budget import TokenBudget
from memory.strategies.protocol import Rejected
from memory.tokens import UNCALIBRATED, Calibration, text_message
from memory.types import Checkpoint, Message
from memory.window.guard import ContextGuard, NeedsCompaction
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


def place_answer(
    guard: ContextGuard, need: NeedsCompaction, answer: str, reminder: Message | None = None
) -> tuple[Message, ...]:
    """Return the request with a summariser's answer in place of what left, or an extract if the answer is rejected."""
    accepted = need.policy.behaviour.accept(
        answer, source=need.to_summarise, previous=need.previous, form=need.policy.summary_form
    )
    if isinstance(accepted, Rejected):
        return guard.fall_back(need, reminder)
    return guard.place(need, accepted.text, reminder)


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
