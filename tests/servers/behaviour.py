"""The scripted model server's answer to one request, as a plain value that can also be read from JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

Fault = Literal[
    "", "cut", "no_finish", "broken_json", "html", "empty", "error_chunk", "refuse", "two_lines", "lost_event"
]
GOES_ON: frozenset[Fault] = frozenset({"two_lines", "lost_event"})
"""Faults of a single event, after which the answer continues to its end."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """An answer. The default is twenty words, sent as fast as the socket accepts them.

    If `text` is None, the answer is `tokens` made-up words. `rate` is in tokens per second, 0 is as fast as possible.
    `hold_after` pauses after that many tokens (0: before the first) until the server is released. `fault` occurs after
    `fault_after` tokens: cut (the connection breaks), no_finish (a clean end without finish_reason), broken_json,
    error_chunk (an `error` object in the stream), html and empty (the whole body), refuse (closed before any answer),
    two_lines (one event in two `data:` lines), lost_event (one event is truncated, the others follow).
    """

    text: str | None = None
    tokens: int = 20
    is_endless: bool = False
    """The last token is repeated forever."""
    rate: float = 0.0
    delay_s: float = 0.0
    tokens_per_write: int = 1
    reasoning: str = ""
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str = "stop"
    hold_after: int | None = None
    fault: Fault = ""
    fault_after: int = 3
    status: int = 200
    error: Any = None
    retry_after: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int = 0
    sends_usage: bool = True
    usage: Any = None
    """Sent instead of the real counts."""
    error_if_field: str | None = None

    def slower(self, rate: float, delay_s: float = 0.0) -> Behaviour:
        return replace(self, rate=rate, delay_s=delay_s)


def read_behaviour(data: Mapping[str, Any]) -> Behaviour:
    """Return a behaviour from JSON. Raise ValueError for an unknown field, so that a misspelt script fails."""
    unknown = set(data) - {field.name for field in fields(Behaviour)}
    if unknown:
        raise ValueError(f"unknown behaviour fields: {', '.join(sorted(unknown))}")
    values = dict(data)
    if "tool_calls" in values:
        values["tool_calls"] = tuple(values["tool_calls"])
    return Behaviour(**values)


def says(text: str, **more: Any) -> Behaviour:
    return Behaviour(text=text, **more)


def fails(
    status: int, message: str, *, code: str | None = None, type: str = "error", **more: Any
) -> Behaviour:
    """Return a behaviour that answers with an error in OpenAI's shape."""
    body = {"error": {"message": message, "type": type, "param": None, "code": code}}
    return Behaviour(status=status, error=body, **more)


ERRORS: dict[str, Callable[[], Behaviour]] = {
    "wrong_key": lambda: fails(
        401, "Incorrect API key provided: sk-wrong.", code="invalid_api_key", type="invalid_request_error"
    ),
    "no_model": lambda: fails(
        404, "The model `nope` does not exist or you do not have access to it.", code="model_not_found"
    ),
    "rate_limit": lambda: fails(
        429,
        "Rate limit reached for gpt-test in organization org-1 on tokens per min (TPM): Limit 30000, Used 29000, "
        "Requested 4000. Please try again in 6s.",
        code="rate_limit_exceeded",
        type="tokens",
        retry_after="6",
    ),
    "quota": lambda: fails(
        429,
        "You exceeded your current quota, please check your plan and billing details.",
        code="insufficient_quota",
        type="insufficient_quota",
    ),
    "no_money": lambda: fails(402, "Insufficient Balance", code="invalid_request_error"),
    "server": lambda: fails(
        500, "The server had an error while processing your request.", type="server_error"
    ),
    "overflow_openai": lambda: fails(
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
        "Please reduce the length of the messages.",
        code="context_length_exceeded",
        type="invalid_request_error",
    ),
    "overflow_anthropic": lambda: fails(
        400, "prompt is too long: 210000 tokens > 200000 maximum", type="invalid_request_error"
    ),
    "overflow_llamacpp": lambda: Behaviour(
        status=400,
        error={
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9001,
                "n_ctx": 8192,
            }
        },
    ),
    "html_502": lambda: Behaviour(status=502, error="<html><body><h1>502 Bad Gateway</h1></body></html>"),
}
