"""Reads a streamed chat completion from its bytes. Pure and quick: this runs for every token of every user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.error_mapping import describe_error, is_html, map_error
from agents.errors import ModelError
from agents.types import FinishReason, ModelItem, ReasoningDelta, TextDelta, TokenUsage, ToolCallDelta

MAX_LINE_BYTES = 32_000_000
_KEPT_STRAY_BYTES = 4_000

_FINISH_REASONS: dict[str, FinishReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "max_output_tokens": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
    "sensitive": "content_filter",
}
# The provider itself says that the answer was not brought to its end.
_BROKEN_REASONS = {"error", "network_error", "insufficient_system_resource", "abort", "cancelled"}


class StreamParser:
    """Feed it what a network read brought; it gives the items in it, contiguous text joined into one delta.

    `error` is what the stream broke with, if it did: the items before it are given first.
    """

    def __init__(self) -> None:
        self.finish_reason: FinishReason | None = None
        self.usage: TokenUsage | None = None
        self.is_done = False
        self.has_output = False
        self.error: ModelError | None = None
        self._rest = b""
        self._stray = b""
        self._items: list[ModelItem] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._is_wanted_back = False

    def feed(self, data: bytes) -> list[ModelItem]:
        if self._rest:
            data = self._rest + data
        end = data.rfind(b"\n")
        self._rest = data[end + 1 :]
        try:
            if end >= 0:
                self._read_lines(data[:end])
            if len(self._rest) > MAX_LINE_BYTES:
                raise describe_error("bad_response", "A line of the stream had no end.")
        except ModelError as error:
            self.error = error
        return self._take_items()

    def _read_lines(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if line.startswith(b"data:"):
                self._read_data(line[5:])
            elif line:
                self._keep_stray(line)

    def close(self) -> list[ModelItem]:
        """What was left after the last byte."""
        rest, self._rest = self._rest.strip(), b""
        if rest and not self.is_done and self.finish_reason is None:
            self._read_rest(rest)
        return self._take_items()

    def read_finish(self) -> FinishReason:
        """How the answer ended. Raises ModelError where it did not, or broke."""
        if self.error is not None:
            raise self.error
        if self.finish_reason is None:
            raise self._describe_end()
        return self.finish_reason

    def _read_rest(self, rest: bytes) -> None:
        if not rest.startswith(b"data:"):
            self._keep_stray(rest)
            return
        try:
            json.loads(rest[5:])
        except ValueError:
            # Half a line: the connection broke in the middle of it.
            return
        try:
            self._read_data(rest[5:])
        except ModelError as error:
            self.error = error

    def _describe_end(self) -> ModelError:
        if self.has_output:
            return describe_error("cut")
        stray = self._stray.decode("utf-8", "replace").strip()
        if stray.startswith("{"):
            return map_error(None, stray)
        words = "An HTML page" if is_html(stray) else stray or "Nothing at all"
        return describe_error("bad_response", f"The provider sent: {words}")

    def _keep_stray(self, line: bytes) -> None:
        """Comments keep a connection alive and `event:` names nothing we need; anything else may be an error page."""
        if not line.startswith((b":", b"event:", b"id:", b"retry:")) and len(self._stray) < _KEPT_STRAY_BYTES:
            self._stray += line + b"\n"

    def _read_data(self, payload: bytes) -> None:
        try:
            chunk = json.loads(payload)
        except ValueError as error:
            self._read_odd_payload(payload.strip(), error)
            return
        if not isinstance(chunk, dict):
            raise describe_error("bad_response", f"Not a chunk: {payload[:200]!r}")
        if chunk.get("error"):
            raise map_error(_read_status(chunk["error"]), chunk)
        if chunk.get("usage"):
            self.usage = read_usage(chunk["usage"])
        if chunk.get("choices"):
            self._read_choice(chunk["choices"][0])
        elif chunk.get("object") == "error" or ("message" in chunk and "choices" not in chunk):
            raise map_error(_read_status(chunk), chunk)

    def _read_odd_payload(self, payload: bytes, error: ValueError) -> None:
        if payload == b"[DONE]":
            self.is_done = True
        elif payload and not self.is_done:
            raise describe_error("bad_response", f"Broken JSON in the stream: {error}") from error

    def _read_choice(self, choice: dict[str, Any]) -> None:
        delta = choice.get("delta") or choice.get("message")
        if delta:
            self._is_wanted_back |= bool(delta.get("reasoning_content"))
            reasoning = delta.get("reasoning_content") or delta.get("reasoning")
            if reasoning and isinstance(reasoning, str):
                self._add_reasoning(reasoning)
            if content := delta.get("content"):
                self._add_content(content)
            if calls := delta.get("tool_calls"):
                self._add_tool_calls(calls)
            if refusal := delta.get("refusal"):
                self._add_content(str(refusal))
        reason = choice.get("finish_reason")
        if reason:
            self._read_finish(str(reason).lower(), choice)

    def _add_content(self, content: Any) -> None:
        self.has_output = True
        if isinstance(content, str):
            if self._reasoning:
                self._flush()
            self._text.append(content)
            return
        for part in content:
            # Mistral streams what a model thinks as parts of the content.
            if part.get("type") == "thinking":
                self._add_reasoning("".join(piece.get("text", "") for piece in part.get("thinking", ())))
            elif part.get("text"):
                self._add_content(part["text"])

    def _add_reasoning(self, text: str) -> None:
        if self._text:
            self._flush()
        self.has_output = True
        self._reasoning.append(text)

    def _add_tool_calls(self, calls: list[dict[str, Any]]) -> None:
        self._flush()
        self.has_output = True
        for position, call in enumerate(calls):
            function = call.get("function") or {}
            arguments = function.get("arguments") or ""
            index = call.get("index")
            delta = ToolCallDelta(
                # Some servers send whole calls and no index.
                index=position if index is None else index,
                call_id=call.get("id") or "",
                name=function.get("name") or "",
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
            self._items.append(delta)

    def _read_finish(self, reason: str, choice: dict[str, Any]) -> None:
        if reason in _BROKEN_REASONS:
            if choice.get("error"):
                raise map_error(_read_status(choice["error"]), {"error": choice["error"]})
            raise describe_error("cut" if self.has_output else "server", f"finish_reason: {reason}")
        self.finish_reason = _FINISH_REASONS.get(reason, "stop")

    def _flush(self) -> None:
        if self._text:
            self._items.append(TextDelta("".join(self._text)))
            self._text = []
        if self._reasoning:
            self._items.append(ReasoningDelta("".join(self._reasoning), self._is_wanted_back))
            self._reasoning = []

    def _take_items(self) -> list[ModelItem]:
        self._flush()
        items, self._items = self._items, []
        return items


def _read_status(error: Any) -> int | None:
    """Some gateways put the HTTP status of the provider behind them into `code`."""
    code = error.get("code") if isinstance(error, Mapping) else None
    number = int(code) if isinstance(code, int | str) and str(code).isdigit() else 0
    return number if 400 <= number < 600 else None


def read_usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    """None where the counts are missing or zero, as some servers send them."""
    prompt = usage.get("prompt_tokens") or usage.get("input_tokens") or 0
    if not prompt:
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = (
        details.get("cached_tokens")
        or usage.get("prompt_cache_hit_tokens")
        or usage.get("cached_tokens")
        or 0
    )
    output = usage.get("completion_tokens") or usage.get("output_tokens") or 0
    return TokenUsage(input_tokens=int(prompt), output_tokens=int(output), cached_tokens=int(cached))
