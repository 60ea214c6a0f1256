"""Makes the summary that memory asked for: one model call per piece, or none, and never more.

Whatever goes wrong ends in the extractive summary, which says why it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.asking import Asking, Sleep
from agents.errors import ModelError
from agents.types import ChatModel, ModelRequest, TokenUsage
from memory.budget import TokenBudget
from memory.extractive import write_extract
from memory.policy import ContextPolicy
from memory.strategies.protocol import Rejected, Summary, SummaryRequest
from memory.summary import bounded_summary
from memory.summary_prompts import Hint
from memory.tokens import Calibration, estimate_text, total_tokens
from memory.types import Message

LEAST_EXTRACT_TOKENS = 24
NO_MODEL = "there is no model to write one"
NO_ROOM = "the summary model's window is too small"

BeforeCall = Callable[[], Awaitable[None]]


async def _nothing() -> None: ...


@dataclass(frozen=True, slots=True)
class SummaryResult:
    """`usages` has one entry per call, failed ones included where they wrote something. `fallback_reason` is None for
    a model's own summary; else the text is extractive and this completes "No model's summary: …"."""

    text: str
    tokens: int
    usages: tuple[TokenUsage, ...] = ()
    fallback_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Summariser:
    """A model that summarises in the middle of an answer, with its own window. `note` hears of each summary, and what
    it took."""

    model: ChatModel
    window: TokenBudget
    calibration: Calibration
    note: Callable[[SummaryResult], None]

    async def summarise(
        self, messages: Sequence[Message], *, previous: str, policy: ContextPolicy, hint: Hint
    ) -> SummaryResult:
        summary = await summarise(
            self.model,
            messages,
            previous=previous,
            policy=policy,
            window=self.window,
            calibration=self.calibration,
            hint=hint,
        )
        self.note(summary)
        return summary


async def summarise(
    model: ChatModel | None,
    messages: Sequence[Message],
    *,
    previous: str,
    policy: ContextPolicy,
    window: TokenBudget,
    calibration: Calibration = Calibration(),
    hint: Hint = "general",
    keep: str = "",
    sleep: Sleep = asyncio.sleep,
    before_call: BeforeCall = _nothing,
) -> SummaryResult:
    """The summary of `previous` and `messages` together. `window` and `calibration` are the summariser's.

    `before_call` is awaited before each piece; what it raises ends the work. Never raises ModelError. Makes as many
    calls as memory planned pieces, and at most one more after a passing error.
    """
    requests = _plan(model, messages, previous, policy, window, calibration, hint, keep)
    asking = Asking(model, policy.summary_timeout_s, sleep) if model is not None and requests else None
    if asking is None:
        reason = NO_MODEL if model is None else NO_ROOM
        return extract_fallback(messages, previous=previous, policy=policy, reason=reason)
    try:
        answer = await _run(asking, requests, previous, policy, before_call)
    except ModelError as error:
        fallback = extract_fallback(messages, previous=previous, policy=policy, reason=_name_reason(error))
        return _with_usages(fallback, asking)
    match policy.behaviour.accept(answer, source=messages, previous=previous, form=policy.summary_form):
        case Summary(text, tokens):
            return SummaryResult(text, tokens, tuple(asking.usages))
        case Rejected(reason):
            fallback = extract_fallback(messages, previous=previous, policy=policy, reason=reason)
            return _with_usages(fallback, asking)


def extract_fallback(
    messages: Sequence[Message], *, previous: str, policy: ContextPolicy, reason: str
) -> SummaryResult:
    """The sentences with the facts, at about half of what they stand for at most; `reason` says why no model did it."""
    covered = total_tokens(messages) + estimate_text(previous)
    space = max(LEAST_EXTRACT_TOKENS, min(policy.summary_max_tokens, covered // 2))
    text = write_extract(previous, messages, space)
    return SummaryResult(text, estimate_text(text), fallback_reason=reason)


def _plan(
    model: ChatModel | None,
    messages: Sequence[Message],
    previous: str,
    policy: ContextPolicy,
    window: TokenBudget,
    calibration: Calibration,
    hint: Hint,
    keep: str,
) -> tuple[SummaryRequest, ...]:
    if model is None:
        return ()
    return policy.behaviour.requests(
        messages,
        previous=previous,
        form=policy.summary_form,
        window=window,
        calibration=calibration,
        hint=hint,
        keep=keep,
    )


async def _run(
    asking: Asking,
    requests: Sequence[SummaryRequest],
    previous: str,
    policy: ContextPolicy,
    before_call: BeforeCall,
) -> str:
    """The calls of one summary, each building on the answer before; the last answer.

    Raises ModelError, also for an empty answer in between.
    """
    answer = previous
    for request in requests:
        await before_call()
        # An answer far over its limit must not crowd out the next piece.
        earlier = bounded_summary(answer, policy.summary_max_tokens * 3 // 2)
        asked = ModelRequest(
            request.messages(earlier), request.max_output_tokens, temperature=policy.summary_temperature
        )
        answer = await asking.ask(asked)
        if not answer.strip():
            raise ModelError("bad_response", "The summary model returned nothing.", detail="returned nothing")
    return answer


def _with_usages(result: SummaryResult, asking: Asking) -> SummaryResult:
    return SummaryResult(result.text, result.tokens, tuple(asking.usages), result.fallback_reason)


def _name_reason(error: ModelError) -> str:
    return f"the summary model failed ({': '.join(filter(None, (error.category, error.detail)))})"
