"""Request and accept summaries with the strategy of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory.budget import TokenBudget
from memory.strategies.protocol import Rejected, Summary, SummaryRequest
from memory.types import Message
from memory.window.policy import ContextPolicy


def summary_requests(
    messages: Sequence[Message], *, previous: str, policy: ContextPolicy, window: TokenBudget, **more: Any
) -> tuple[SummaryRequest, ...]:
    return policy.behaviour.requests(
        messages, previous=previous, form=policy.summary_form, window=window, **more
    )


def accept_summary(
    answer: str, *, source: Sequence[Message], previous: str = "", policy: ContextPolicy
) -> Summary | Rejected:
    return policy.behaviour.accept(answer, source=source, previous=previous, form=policy.summary_form)
