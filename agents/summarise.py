"""Asks a model for a summary, piece by piece, and falls back to the sentences that carry facts. Never loops."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agents.errors import ModelError
from agents.types import ChatModel, Finished, ModelRequest, TextDelta, TokenUsage
from memory.budget import TokenBudget
from memory.compaction import TOLERANCE, Rejected, Summary, SummaryRequest, accept_summary, summary_requests
from memory.extractive import extract_summary
from memory.policy import ContextPolicy
from memory.summary import bounded_summary
from memory.tokens import Calibration, estimate_text
from memory.types import Message

CALL_TIMEOUT_S = 180.0
RETRY_PAUSE_S = 2.0
PASSING = frozenset({"connection", "server", "rate_limit", "timeout", "cut", "stalled"})
NO_ROOM = "the summary model's window is too small to read it"

BeforeCall = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Summarised:
    """A summary that may be stored. `fallback_reason` says why no model wrote it; `calls` cost something even then."""

    text: str
    tokens: int
    calls: tuple[TokenUsage, ...]
    fallback_reason: str = ""


async def summarise(
    model: ChatModel,
    messages: Sequence[Message],
    *,
    previous: str,
    policy: ContextPolicy,
    window: TokenBudget,
    calibration: Calibration,
    keep: str = "",
    before_call: BeforeCall,
) -> Summarised:
    """The summary of `previous` and `messages` together. `window` and `calibration` are the summariser's own.

    `before_call` is awaited before each call; what it raises ends the work.
    """
    requests = summary_requests(
        messages, previous=previous, policy=policy, window=window, calibration=calibration, keep=keep
    )
    calls: list[TokenUsage] = []
    try:
        answer = await _ask_all(model, requests, previous, policy, calls, before_call)
    except ModelError as error:
        return fall_back(messages, previous, policy, error.message, calls)
    accepted = accept_summary(answer, source=messages, previous=previous, policy=policy)
    match accepted:
        case Summary():
            return Summarised(accepted.text, accepted.tokens, tuple(calls))
        case Rejected():
            reason = accepted.reason if requests else NO_ROOM
            return fall_back(messages, previous, policy, reason, calls)


async def _ask_all(
    model: ChatModel,
    requests: Sequence[SummaryRequest],
    previous: str,
    policy: ContextPolicy,
    calls: list[TokenUsage],
    before_call: BeforeCall,
) -> str:
    """The last answer; each request is given the answer before it. Fills `calls`. Raises ModelError."""
    answer = previous if requests else ""
    for request in requests:
        await before_call()
        earlier = (
            bounded_summary(answer, int(policy.summary_max_tokens * TOLERANCE))
            if request.number > 1
            else answer
        )
        asked = ModelRequest(request.messages(earlier), request.max_output_tokens, temperature=None)
        answer = await _ask_twice(model, asked, calls)
    return answer


async def _ask_twice(model: ChatModel, request: ModelRequest, calls: list[TokenUsage]) -> str:
    try:
        return await _ask(model, request, calls)
    except ModelError as error:
        if error.category not in PASSING:
            raise
    await asyncio.sleep(RETRY_PAUSE_S)
    return await _ask(model, request, calls)


async def _ask(model: ChatModel, request: ModelRequest, calls: list[TokenUsage]) -> str:
    pieces: list[str] = []
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            async for item in model.stream(request):
                if isinstance(item, TextDelta):
                    pieces.append(item.text)
                elif isinstance(item, Finished):
                    calls.append(item.usage)
    except TimeoutError:
        raise ModelError("timeout", "the summary model did not answer in time") from None
    return "".join(pieces)


def fall_back(
    messages: Sequence[Message],
    previous: str,
    policy: ContextPolicy,
    reason: str,
    calls: Sequence[TokenUsage] = (),
) -> Summarised:
    """The previous summary, shortened where it must be, and the new span's sentences that carry facts."""
    room = policy.summary_max_tokens
    earlier = bounded_summary(previous, room * 2 // 3)
    extract = extract_summary(messages, room - estimate_text(earlier))
    text = f"{earlier}\n\n{extract}".strip()
    return Summarised(text, estimate_text(text), tuple(calls), fallback_reason=reason)
