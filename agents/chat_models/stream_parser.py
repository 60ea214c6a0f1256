"""Parse a streamed chat completion from its bytes. No I/O, and fast: this runs for every token of every user."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from agents.chat_models.error_mapping import describe_error, is_html, map_error
from agents.errors import ModelError
from agents.text import read_json
from agents.types import (
    LIMIT_REASONS,
    FinishReason,
    ModelItem,
    ReasoningDelta,
    TextDelta,
    TokenUsage,
    ToolCallDelta,
)

MAX_FRUITLESS_BYTES = 32_000_000
"""Limit for bytes without any output: endless lines and events, comments, HTML pages, empty calls."""
_KEPT_STRAY_BYTES = 4_000
MAX_COUNT_TOKENS = 20_000_000
"""No call uses more. A larger count is a fault of the server, and our own estimate is closer to the truth."""
MAX_BLANK_CHARS = 1_000
"""More blanks than this at the beginning are passed on as text: some models write blank lines forever."""
_THINK_TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"))

_STOPS = "stop stop_sequence end_turn eos eos_token end_of_text end complete completed finish finished done normal none"
_FINISH_REASONS: dict[str, FinishReason] = {
    **dict.fromkeys(_STOPS.split(), "stop"),
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
# The provider could not finish the answer.
_BROKEN_REASONS = {"error", "network_error", "insufficient_system_resource", "abort", "cancelled"}


class StreamParser:
    """Parses each network read into items; adjacent text becomes one delta.

    `error` is set if the stream breaks; the items before it are returned first. An unreadable event is skipped and
    counted in `broken_events`; the answer goes on, but may have lost a part. `secrets` are removed from its errors.
    """

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self.secrets = secrets
        self.finish_reason: FinishReason | None = None
        self.usage: TokenUsage | None = None
        self.is_done = False
        self.has_output = False
        self.error: ModelError | None = None
        self.broken_events = 0
        self.unknown_reason = ""
        """The provider's finish reason, if we do not know it."""
        self._has_lost_part = False
        self._rest: list[bytes] = []
        self._fruitless_bytes = 0
        self._stray = b""
        self._event: list[bytes] = []
        self._tags: _ThinkTags | None = _ThinkTags()
        self._items: list[ModelItem] = []
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._is_wanted_back = False

    @property
    def stage(self) -> tuple[bool, bool]:
        """Return whether the answer has ended, and whether the stream said that nothing follows."""
        return self.finish_reason is not None, self.is_done

    def feed(self, data: bytes) -> list[ModelItem]:
        """Return the items that these bytes complete."""
        end = data.rfind(b"\n")
        try:
            if end >= 0:
                self._read_lines(self._take_rest() + data[:end])
            self._rest.append(data[end + 1 :])
        except ModelError as error:
            self.error = error
        items = self._take_items()
        self._fruitless_bytes = 0 if items else self._fruitless_bytes + len(data)
        if self._fruitless_bytes > MAX_FRUITLESS_BYTES and self.error is None:
            self.error = describe_error("bad_response", "Too much of the stream contained no output.")
        return items

    def close(self) -> list[ModelItem]:
        """Return the items of what was left after the last byte."""
        rest = self._take_rest().strip()
        try:
            # Also after the end of the answer: usage follows it, and some servers do not end the last line.
            if rest.startswith(b"data:"):
                self._read_data(rest[5:])
            elif rest:
                self._keep_stray(rest)
            self._end_event()
        except ModelError as error:
            self.error = error
        if self._tags is not None:
            self._add_parsed(self._tags.close())
        return self._take_items()

    def _take_rest(self) -> bytes:
        """Return the line that has begun. It is joined only here, because each read would copy it again."""
        rest = b"".join(self._rest)
        self._rest = []
        return rest

    def read_finish(self) -> FinishReason:
        """Return how the answer ended. Raise ModelError if it did not end, or if the stream broke."""
        if self.error is not None:
            raise self.error
        if self.finish_reason is None:
            raise self._describe_end()
        # An answer that a limit ended is known to be unfinished.
        is_told = self.finish_reason in LIMIT_REASONS
        return "lost" if self._has_lost_part and not is_told else self.finish_reason

    def _describe_end(self) -> ModelError:
        if self.has_output:
            return describe_error("cut")
        stray = self._stray.decode("utf-8", "replace").strip()
        if stray.startswith("{"):
            return self._map_error(None, stray)
        if self.broken_events and not stray:
            return describe_error("bad_response", "The provider sent broken JSON.")
        words = "An HTML page" if is_html(stray) else stray or "Nothing at all"
        return describe_error("bad_response", f"The provider sent: {words}", secrets=self.secrets)

    def _map_error(self, status: int | None, body: object) -> ModelError:
        return map_error(status, body, secrets=self.secrets)

    # --- events

    def _read_lines(self, data: bytes) -> None:
        for line in data.split(b"\n"):
            if line.startswith(b"data:"):
                self._read_data(line[5:])
            elif self._event and not line.strip():
                self._end_event()
            elif line:
                self._keep_stray(line)

    def _read_data(self, payload: bytes) -> None:
        """Read a line as a whole event, which it nearly always is, or else keep it until its event ends.

        Some servers omit the blank line between events, so a line that is a whole chunk ends a broken event.
        """
        if self.is_done:
            return
        chunk = _parse(payload)
        if isinstance(chunk, dict) and (not self._event or "choices" in chunk):
            self._drop_event()
            self._read_chunk(chunk)
        elif payload.strip() == b"[DONE]":
            self._end_event()
            self.is_done = True
        elif payload.strip():
            self._event.append(payload)

    def _end_event(self) -> None:
        """Parse the kept lines as one event."""
        if not self._event:
            return
        chunk = _parse(b"\n".join(self._event))
        if isinstance(chunk, dict):
            self._event = []
            self._read_chunk(chunk)
        else:
            self._drop_event()

    def _drop_event(self) -> None:
        if self._event:
            self.broken_events += 1
            # Keep-alive data is not an object.
            begins = self._event[0].lstrip()[:1]
            self._has_lost_part |= begins == b"{" and self.finish_reason is None
            self._event = []

    def _keep_stray(self, line: bytes) -> None:
        """Keep a line that may be part of an error page; parse a line after a byte order mark.

        Comments only keep a connection alive, and `event:` names nothing we need.
        """
        if line.startswith(BOM_UTF8):
            self._read_lines(line.removeprefix(BOM_UTF8))
        elif (
            not line.startswith((b":", b"event:", b"id:", b"retry:")) and len(self._stray) < _KEPT_STRAY_BYTES
        ):
            self._stray += line + b"\n"

    def _read_chunk(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error"):
            raise self._map_error(_read_status(chunk["error"]), chunk)
        if chunk.get("usage"):
            # Some servers send zeros after the counts.
            self.usage = read_usage(chunk["usage"]) or self.usage
        choices = chunk.get("choices")
        if choices and isinstance(choices, list):
            for choice in choices:
                # Only one answer was requested; other choices are not part of it.
                if isinstance(choice, dict) and not choice.get("index"):
                    self._read_choice(choice)
                    break
        elif chunk.get("object") == "error" or ("message" in chunk and "choices" not in chunk):
            raise self._map_error(_read_status(chunk), chunk)

    def _read_choice(self, choice: dict[str, Any]) -> None:
        # Some servers send the whole message instead of a delta.
        delta = choice.get("delta") or choice.get("message")
        if delta and isinstance(delta, dict):
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

    def _read_finish(self, reason: str, choice: dict[str, Any]) -> None:
        if reason in _BROKEN_REASONS:
            if choice.get("error"):
                raise self._map_error(_read_status(choice["error"]), {"error": choice["error"]})
            raise describe_error("cut" if self.has_output else "server", f"finish_reason: {reason}")
        self.finish_reason = _FINISH_REASONS.get(reason, "unknown_reason")
        self.unknown_reason = reason if self.finish_reason == "unknown_reason" else ""

    # --- text, reasoning and calls

    def _add_content(self, content: Any) -> None:
        self.has_output = True
        if isinstance(content, str):
            if self._tags is None:
                self._add_text(content)
            else:
                self._add_parsed(self._tags.feed(content))
            return
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                continue
            # Mistral streams reasoning as parts of the content.
            if part.get("type") == "thinking":
                self._add_reasoning(_join_texts(part.get("thinking")))
            elif part.get("text") and isinstance(part["text"], str):
                self._add_content(part["text"])

    def _add_parsed(self, parsed: tuple[str, str]) -> None:
        """Add what was found around tags: reasoning, then text. Once there is text, stop looking for tags."""
        reasoning, text = parsed
        if reasoning:
            self._add_reasoning(reasoning)
        if text:
            self._add_text(text)
            self._tags = None

    def _add_text(self, text: str) -> None:
        if self._reasoning:
            self._flush()
        self._text.append(text)

    def _add_reasoning(self, text: str) -> None:
        if self._text:
            self._flush()
        self.has_output = True
        self._reasoning.append(text)

    def _add_tool_calls(self, calls: Any) -> None:
        self._flush()
        self.has_output = True
        for position, call in enumerate(calls if isinstance(calls, list) else ()):
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict):
                continue
            arguments = function.get("arguments") or ""
            index = call.get("index")
            delta = ToolCallDelta(
                # Some servers send whole calls without an index.
                index=index if isinstance(index, int) else position,
                call_id=str(call.get("id") or ""),
                name=str(function.get("name") or ""),
                # Some servers send an object instead of its JSON text.
                arguments=arguments if isinstance(arguments, str) else json.dumps(arguments),
            )
            self._items.append(delta)

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


class _ThinkTags:
    """Splits the content of a model that writes its reasoning between tags at the beginning of its answer.

    Without a closing tag all of it is reasoning: the model stopped before it came to its answer.
    """

    def __init__(self) -> None:
        self._held = ""
        self._close_tag = ""
        self._has_closed = False

    def feed(self, text: str) -> tuple[str, str]:
        """Return (reasoning, text) as far as decided; once there is text, everything that follows is text."""
        self._held += text
        if self._has_closed:
            # Drop blank lines between the reasoning and the answer.
            return "", self._take(len(self._held)).lstrip()
        if not self._close_tag:
            begun = self._held.lstrip()
            tags = next((tags for tags in _THINK_TAGS if begun.startswith(tags[0])), None)
            if tags is None:
                is_open = any(opening.startswith(begun) for opening, _ in _THINK_TAGS)
                is_open &= len(self._held) < MAX_BLANK_CHARS
                return "", "" if is_open else self._take(len(self._held))
            self._held, self._close_tag = begun[len(tags[0]) :], tags[1]
        return self._read_thought()

    def close(self) -> tuple[str, str]:
        """Return (reasoning, text) held back until the end of the stream."""
        held = self._take(len(self._held))
        return (held, "") if self._close_tag and not self._has_closed else ("", held)

    def _read_thought(self) -> tuple[str, str]:
        end = self._held.find(self._close_tag)
        if end >= 0:
            reasoning = self._take(end)
            self._held, self._has_closed = self._held[len(self._close_tag) :], True
            return reasoning, self._take(len(self._held)).lstrip()
        # The last characters may be the beginning of the closing tag.
        lengths = range(min(len(self._held), len(self._close_tag) - 1), 0, -1)
        kept = next((length for length in lengths if self._close_tag.startswith(self._held[-length:])), 0)
        return self._take(len(self._held) - kept), ""

    def _take(self, count: int) -> str:
        taken, self._held = self._held[:count], self._held[count:]
        return taken


def _parse(payload: bytes) -> Any:
    """Return the JSON value; None if the payload is invalid."""
    try:
        return from_json(payload)  # takes a third of the time
    except ValueError:
        pass
    return read_json(payload)  # accepts half a surrogate pair


def _join_texts(pieces: Any) -> str:
    pieces = pieces if isinstance(pieces, list) else ()
    return "".join(str(piece.get("text") or "") for piece in pieces if isinstance(piece, dict))


def _read_status(error: Any) -> int | None:
    """Return the HTTP status that some gateways put into `code`; None for any other code."""
    code = str(error.get("code")) if isinstance(error, Mapping) else ""
    number = int(code) if code.isascii() and code.isdigit() and len(code) == 3 else 0
    return number if 400 <= number < 600 else None


def read_usage(usage: Any) -> TokenUsage | None:
    """Return the counts; None if they are missing, zero or impossible, so that our estimate is used instead."""
    if not isinstance(usage, Mapping):
        return None
    prompt = usage.get("prompt_tokens") or usage.get("input_tokens")
    output = usage.get("completion_tokens") or usage.get("output_tokens") or 0
    if not prompt or not _is_count(prompt) or not _is_count(output):
        return None
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    reported = details.get("cached_tokens") if isinstance(details, Mapping) else None
    cached = reported or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens") or 0
    return TokenUsage(int(prompt), int(output), min(int(cached), int(prompt)) if _is_count(cached) else 0)


def _is_count(value: Any) -> bool:
    # bool is a subclass of int.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= MAX_COUNT_TOKENS
