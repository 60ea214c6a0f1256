"""Turns, and the link between a tool call and its results. Everything here is linear.

A result belongs to the nearest assistant message before it, if that message made the call. So an orphaned result, or a
call without a result, neither binds messages together nor blocks a split.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from memory.tokens import estimate_parts, with_parts, without_parts
from memory.types import Message, ReasoningPart, ToolCallPart, ToolResultPart

INTERRUPTED = "Interrupted: this call may or may not have happened."


def has_tool_calls(messages: Sequence[Message]) -> bool:
    """Return whether any message calls a tool or is a result of one."""
    return any(
        message.role == "tool" or (message.role == "assistant" and message.tool_calls) for message in messages
    )


def starts_turn(message: Message) -> bool:
    # The role is not enough: other messages put before the model, such as a summary, are sent as the user's, too.
    return message.role == "user" and message.kind in ("message", "question")


def split_turns(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Return the turns: a user message and all that follows up to the next one.

    What precedes the first user message is a turn of its own; a message sent during a run stays in that run's turn.
    """
    return _split_before(messages, starts_turn)


def _split_before(messages: Sequence[Message], begins: Callable[[Message], bool]) -> list[Sequence[Message]]:
    """Return the messages in pieces, of which each but perhaps the first begins with a message that `begins` one."""
    starts = [index for index, message in enumerate(messages) if index and begins(message)]
    bounds = [0, *starts, len(messages)] if messages else []
    return [messages[start:end] for start, end in itertools.pairwise(bounds)]


def is_safe_split(messages: Sequence[Message], index: int) -> bool:
    return safe_split(messages, index) == index


def safe_split(messages: Sequence[Message], index: int) -> int:
    """Return the nearest split at or before `index` that separates no tool call from its results.

    `messages[:split]` can leave while `messages[split:]` stays. Reads only the messages around `index`.
    """
    index = min(max(index, 0), len(messages))
    caller = _previous_assistant(messages, index)
    if caller is None or not messages[caller].tool_calls:
        return index
    called = {call.call_id for call in messages[caller].tool_calls}
    return caller if called & _results_ahead(messages, index) else index


def safe_split_after(messages: Sequence[Message], index: int) -> int:
    """Return the nearest split at or after `index`: behind the results of a call that began before it."""
    if is_safe_split(messages, index):
        return index
    last = index
    called = {call.call_id for call in messages[safe_split(messages, index)].tool_calls}
    for at in range(index, len(messages)):
        if messages[at].role == "assistant":
            break
        if any(result.call_id in called for result in messages[at].tool_results):
            last = at
    return last + 1


def before_question(messages: Sequence[Message], index: int) -> int:
    """Return the split itself, or the one before the question that it would separate from its reply."""
    at = index
    while 0 < at < len(messages) and messages[at].role == "assistant" and starts_turn(messages[at - 1]):
        at -= 1
    return at


def after_reply(messages: Sequence[Message], index: int) -> int:
    """Return the split itself, or the one after the reply that it would separate from its question."""
    at = index
    while 0 < at < len(messages) and messages[at].role == "assistant" and starts_turn(messages[at - 1]):
        at += 1
    return at


def _previous_assistant(messages: Sequence[Message], index: int) -> int | None:
    return next((at for at in range(index - 1, -1, -1) if messages[at].role == "assistant"), None)


def _results_ahead(messages: Sequence[Message], index: int) -> set[str]:
    found: set[str] = set()
    for at in range(index, len(messages)):
        if messages[at].role == "assistant":
            break
        found.update(result.call_id for result in messages[at].tool_results)
    return found


def bind_groups(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Return (start, end) of messages that stay or leave together: a call with its results, or a single message.

    Expects a repaired view, where results directly follow their call.
    """
    groups: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        if message.role == "tool" and groups and messages[groups[-1][0]].tool_calls:
            groups[-1] = (groups[-1][0], index + 1)
        else:
            groups.append((index, index + 1))
    return groups


def repair_tool_calls(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a view that every provider accepts: each call is directly followed by exactly one result.

    A call without a result gets one that says it was interrupted. A result without a call, and a second result of a
    call, are dropped. Messages between a call and its results move after them. Stored messages do not change.
    """
    if not has_tool_calls(messages):
        return tuple(messages)
    repaired: list[Message] = []
    for span in _split_before(messages, lambda message: message.role == "assistant"):
        repaired.extend(_repair_span(span))
    return tuple(repaired)


def _repair_span(span: Sequence[Message]) -> list[Message]:
    calls = span[0].tool_calls if span[0].role == "assistant" else ()
    others = [message for message in span[1 if calls else 0 :] if message.role != "tool"]
    if not calls:
        return others
    found: dict[str, Message] = {}
    for message in span[1:]:
        for result in message.tool_results if message.role == "tool" else ():
            found.setdefault(result.call_id, _only(message, result))
    results = [found.get(call.call_id) or _interrupted(call) for call in _distinct(calls)]
    return [_with_calls(span[0], _distinct(calls)), *results, *others]


def _distinct(calls: Sequence[ToolCallPart]) -> tuple[ToolCallPart, ...]:
    # Of several calls with one id, the first counts.
    return tuple({call.call_id: call for call in reversed(calls)}.values())[::-1]


def _with_calls(message: Message, calls: tuple[ToolCallPart, ...]) -> Message:
    if len(calls) == len(message.tool_calls):
        return message
    return with_parts(message, (*without_parts(message, ToolCallPart).parts, *calls))


def _only(message: Message, result: ToolResultPart) -> Message:
    others = [part for part in message.tool_results if part is not result]
    return (
        with_parts(message, tuple(part for part in message.parts if part not in others))
        if others
        else message
    )


def _interrupted(call: ToolCallPart) -> Message:
    parts = (ToolResultPart(call_id=call.call_id, name=call.name, text=INTERRUPTED, is_error=True),)
    return Message(role="tool", parts=parts, tokens=estimate_parts(parts))


def reduce_turns(messages: Sequence[Message]) -> list[Message]:
    return [message for turn in split_turns(messages) for message in reduce_turn(turn)]


def reduce_turn(turn: Sequence[Message]) -> list[Message]:
    """Return user text and last reply of one turn. A turn without tools, or with a pinned tool message, stays
    unchanged."""
    if not has_tool_calls(turn):
        return list(turn)
    # Providers reject a call without its result, so a pin on either keeps both.
    if any(message.pinned and (message.role == "tool" or message.tool_calls) for message in turn):
        return list(turn)
    last = _last_reply(turn)
    kept = [message for message in turn if message.role == "user" or message.pinned or message is last]
    return [without_parts(message, ToolCallPart, ReasoningPart) for message in kept]


def _last_reply(turn: Sequence[Message]) -> Message | None:
    return next((message for message in reversed(turn) if message.role == "assistant" and message.text), None)
