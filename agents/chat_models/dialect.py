"""Learn what an OpenAI-compatible server accepts of the protocol: guess first, then adapt to its refusals."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from agents.chat_models.overflow import find_output_limit
from agents.chat_models.wire import write_request
from agents.types import ModelEndpoint, ModelRequest, WireStyle

OPENAI_ADDRESS = "https://api.openai.com/v1"

_REFUSES = (
    r"unsupported|not supported|does ?n.t support|unknown|unrecogni[sz]ed|not permitted|not allowed|extra_forbidden"
    r"|unexpected|invalid|only the default|deprecated"
)
# The verb, and of roles: many refusals name an alternative to what they refuse.
_WANTS_ALTERNATION = (
    r"\b(?:roles?|user|assistant)\b.{0,60}\balternat(?:es?|ing)\b"
    r"|\balternat(?:es?|ing)\b.{0,60}\b(?:roles?|user|assistant)\b"
)
_REFUSES_LATE_SYSTEM = (
    r"unexpected role .?system|system (?:message|role|prompt)s? .{0,30}(?:at the (?:beginning|start)|first|precede)"
    r"|first message .{0,40}system"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server accepts. `output_limit` is its limit for an answer, once a refusal has stated it."""

    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    has_stream_options: bool = True
    has_temperature: bool = True
    output_limit: int | None = None
    style: WireStyle = field(default_factory=WireStyle)


def guess_dialect(endpoint: ModelEndpoint) -> Dialect:
    """Return the first guess: OpenAI's newer models refuse max_tokens, most other servers accept nothing else."""
    host = urlsplit(endpoint.base_url or OPENAI_ADDRESS).hostname or ""
    is_openai = host == "api.openai.com" or host.endswith(".openai.azure.com")
    return Dialect(limit_name="max_completion_tokens" if is_openai else "max_tokens")


def write_body(request: ModelRequest, model_id: str, dialect: Dialect) -> dict[str, Any]:
    """Return the body of a streamed call. With `max_output_tokens` 0, the server chooses the limit."""
    body = {"model": model_id, "stream": True} | write_request(request, dialect.style)
    limit = min(request.max_output_tokens, dialect.output_limit or request.max_output_tokens)
    if limit > 0:
        body[dialect.limit_name] = limit
    if dialect.has_stream_options:
        body["stream_options"] = {"include_usage": True}
    if dialect.has_temperature and request.temperature is not None:
        body["temperature"] = request.temperature
    # Some servers refuse these if no tools are offered.
    about_tools = () if request.tools else ("tool_choice", "parallel_tool_calls")
    # Our own fields override an operator's options.
    return {name: value for name, value in request.options.items() if name not in about_tools} | body


def adapt_dialect(dialect: Dialect, refusal: str) -> Dialect | None:
    """Return a dialect that avoids what was refused; None if the refusal has another cause."""
    adapted = _adapt(dialect, refusal)
    return adapted if adapted != dialect else None


def _adapt(dialect: Dialect, refusal: str) -> Dialect:
    text = refusal.lower()
    if limit := find_output_limit(refusal):
        # Only lower the limit: two refusals that contradict each other must not cause a loop.
        return replace(dialect, output_limit=min(limit, dialect.output_limit or limit))
    if "stream_options" in text:
        return replace(dialect, has_stream_options=False)
    if "reasoning_content" in text:
        return replace(dialect, style=_fit_reasoning(dialect.style, text))
    if re.search(_WANTS_ALTERNATION, text):
        return replace(dialect, style=replace(dialect.style, merges_roles=True))
    if re.search(_REFUSES_LATE_SYSTEM, text):
        return replace(dialect, style=replace(dialect.style, has_late_system=False))
    if re.search(r"system (?:role|message|prompt)s?.{0,40}(?:not|unsupported)", text):
        return replace(dialect, style=replace(dialect.style, has_system=False))
    if not re.search(_REFUSES, text):
        return dialect
    if "temperature" in text:
        return replace(dialect, has_temperature=False)
    return _adapt_limit_name(dialect, text)


def _fit_reasoning(style: WireStyle, text: str) -> WireStyle:
    """Return the adapted style: some servers require the reasoning before a call, others refuse it."""
    if re.search(r"missing|must be passed|required", text):
        return replace(style, has_reasoning=True, needs_reasoning=True)
    if style.needs_reasoning or not re.search(_REFUSES, text):
        return style
    return replace(style, has_reasoning=False)


def _adapt_limit_name(dialect: Dialect, text: str) -> Dialect:
    """Return the dialect with the other name of the limit, if the first one in the refusal is the current one."""
    named = re.search(r"\bmax_(?:completion_)?tokens\b", text)
    if named is None or named[0] != dialect.limit_name:
        return dialect
    other: Literal["max_tokens", "max_completion_tokens"] = (
        "max_tokens" if dialect.limit_name == "max_completion_tokens" else "max_completion_tokens"
    )
    return replace(dialect, limit_name=other)
