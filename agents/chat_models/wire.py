"""Write messages in the format of OpenAI's chat completions, in a form that strict servers accept, too.

No null fields, no blank contents, no empty lists. `agents.types.WireStyle` says what a server requires.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents.types import ModelRequest, ToolSpec, WireStyle
from memory.types import ImagePart, Message, ReasoningPart, TextPart, ToolResultPart

WireMessage = dict[str, Any]
MISSING_IMAGE = "[An image that is no longer in view]"
EMPTY_RESULT = "(no output)"
NO_REASONING = " "
"""Servers that require reasoning treat an empty text as missing."""


def write_request(request: ModelRequest, style: WireStyle = WireStyle()) -> dict[str, Any]:
    """Return messages and tools of the request body; the client adds the model's name and limits."""
    messages = write_messages(request.messages, style)
    if not request.tools:
        return {"messages": messages}
    return {"messages": messages, "tools": [write_tool(tool) for tool in request.tools]}


def encode_body(body: Mapping[str, Any]) -> bytes:
    """Return the request body as sent."""
    return write_json(body).encode()


def write_json(value: Any) -> str:
    # NaN and Infinity are not valid JSON.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def write_messages(messages: Sequence[Message], style: WireStyle = WireStyle()) -> list[WireMessage]:
    """Return the messages in the form that the server accepts."""
    written = list(_write_each(messages, style))
    if not style.has_system:
        written = [_as_user(wire) for wire in written]
    elif style.merges_roles or not style.has_late_system:
        written = [*written[:1], *map(_as_user, written[1:])]
    if style.merges_roles or not style.has_system:
        return _merge_neighbours(written)
    return written


def _write_each(messages: Sequence[Message], style: WireStyle) -> Iterator[WireMessage]:
    """Yield the messages. A tool message cannot hold images: those of results follow in a user message."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        if shown and message.role != "tool":
            yield {"role": "user", "content": shown}
            shown = []
        if message.is_plain and message.role != "tool":  # nearly all of a long history
            if (text := message.text).strip():
                yield {"role": message.role, "content": text}
            continue
        for wire in _write_message(message):
            yield _fit_reasoning(wire, style)
        if message.role == "tool":
            images = [part for part in message.parts if isinstance(part, ImagePart) and part.data_url]
            shown += [written for part in images if (written := _write_part(part))]
    if shown:
        yield {"role": "user", "content": shown}


def _fit_reasoning(wire: WireMessage, style: WireStyle) -> WireMessage:
    if style.needs_reasoning and "tool_calls" in wire:
        return {"reasoning_content": NO_REASONING} | wire
    if style.has_reasoning or "reasoning_content" not in wire:
        return wire
    return {name: value for name, value in wire.items() if name != "reasoning_content"}


def _as_user(wire: WireMessage) -> WireMessage:
    return wire | {"role": "user"} if wire["role"] == "system" else wire


def _write_message(message: Message) -> list[WireMessage]:
    """Return several messages for several tool results, none for a message without anything a model can read."""
    if message.role == "tool":
        return [_write_result(result) for result in message.tool_results]
    if message.role == "assistant":
        return _write_assistant(message)
    content = _write_content(message)
    return [{"role": message.role, "content": content}] if content else []


def _write_content(message: Message) -> str | list[dict[str, Any]]:
    if not any(isinstance(part, ImagePart) for part in message.parts):
        return message.text if message.text.strip() else ""
    return [written for part in message.parts if (written := _write_part(part))]


def _write_part(part: object) -> dict[str, Any] | None:
    if isinstance(part, TextPart) and part.text.strip():
        return {"type": "text", "text": part.text}
    if isinstance(part, ImagePart) and part.data_url:
        return {"type": "image_url", "image_url": {"url": part.data_url}}
    if isinstance(part, ImagePart):
        return {"type": "text", "text": MISSING_IMAGE}
    return None


def _write_assistant(message: Message) -> list[WireMessage]:
    wire: WireMessage = {"role": "assistant"}
    if message.text.strip():
        wire["content"] = message.text
    if message.tool_calls:
        if thought := "".join(part.text for part in message.parts if isinstance(part, ReasoningPart)):
            wire["reasoning_content"] = thought
        wire["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments or "{}"},
            }
            for call in message.tool_calls
        ]
    return [wire] if len(wire) > 1 else []


def _write_result(result: ToolResultPart) -> WireMessage:
    content = result.text if result.text.strip() else EMPTY_RESULT
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def write_tool(tool: ToolSpec) -> dict[str, Any]:
    """Return the tool as declared in a request."""
    parameters = tool.parameters or {"type": "object", "properties": {}}
    function: dict[str, Any] = {"name": tool.name, "description": tool.description, "parameters": parameters}
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _merge_neighbours(messages: list[WireMessage]) -> list[WireMessage]:
    merged: list[WireMessage] = []
    for wire in messages:
        if merged and _can_merge(merged[-1], wire):
            merged[-1] = merged[-1] | {"content": _join_contents(merged[-1]["content"], wire["content"])}
        else:
            merged.append(wire)
    return merged


def _can_merge(first: WireMessage, second: WireMessage) -> bool:
    if first["role"] != second["role"] or first["role"] not in ("user", "assistant"):
        return False
    return all("tool_calls" not in wire and "content" in wire for wire in (first, second))


def _join_contents(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return _as_parts(first) + _as_parts(second)


def _as_parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
