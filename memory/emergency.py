"""What to send after a provider said that the request was too long: about half of it, then nearly nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory.budget import TokenBudget
from memory.fallback import write_extract
from memory.guard import fit_request
from memory.policy import ContextPolicy
from memory.summary import (
    FRAME_TOKENS,
    marker_message,
    read_summary,
    summary_message,
)
from memory.tokens import UNCALIBRATED, Calibration, total_tokens
from memory.truncate import cut_message, cut_middle, find_question, is_frame
from memory.turns import repair_tool_calls, split_turns
from memory.types import Message

EMERGENCY_SHARE = 2
EMERGENCY_CHARS = 10_000
EMERGENCY_TURNS = 5
SUMMARY_SHARE = 4


@dataclass(frozen=True, slots=True)
class Emergency:
    """`dropped` is what left; the caller has it summarised to memory. Nothing stored is changed."""

    messages: tuple[Message, ...]
    dropped: tuple[Message, ...]


def emergency_view(
    messages: Sequence[Message],
    policy: ContextPolicy,
    budget: TokenBudget,
    *,
    step: Literal[1, 2],
    reminder: Message | None = None,
    calibration: Calibration = UNCALIBRATED,
) -> Emergency:
    """Step 1: about half of what was sent, of at most five turns, long texts cut. Step 2: summary and question.

    Never a model call: the provider is refusing them. Where it named its window, `budget` is made of that.
    """
    messages = repair_tool_calls(messages)
    at = find_question(messages)
    question = messages[at : at + 1] if at is not None else ()
    system = [message for message in messages if message.role == "system"]
    rest = [message for index, message in enumerate(messages) if not is_frame(message) and index != at]
    room = min(calibration.invert(budget.input_tokens), total_tokens(messages)) // EMERGENCY_SHARE
    kept = _newest_turns(messages, at) if step == 1 else ()
    capped = [_cap(message) if index != at else message for index, message in kept]
    held = {index for index, _ in kept}
    gone = [message for index, message in enumerate(messages) if index not in held and not is_frame(message)]
    summary = _summarise(messages, [message for message in gone if message not in question], room)
    behind = [reminder] if reminder and step == 1 else []
    sent = fit_request(
        [*system, summary, *behind, *(capped if step == 1 else question)],
        max(room - total_tokens(system), total_tokens(question)),
        policy.keep_recent // 2,
    )
    remaining = {message.id for message in sent if message.id}
    return Emergency(
        sent, tuple(message for message in rest if message.id is None or message.id not in remaining)
    )


def _newest_turns(messages: Sequence[Message], question: int | None) -> list[tuple[int, Message]]:
    first = [turn.start for turn in split_turns(messages)][-EMERGENCY_TURNS:][:1] or [0]
    return [
        (index, message)
        for index, message in enumerate(messages)
        if not is_frame(message) and message.kind != "recall" and (index >= first[0] or index == question)
    ]


def _cap(message: Message) -> Message:
    return cut_message(message, EMERGENCY_CHARS, cut_middle)


def _summarise(messages: Sequence[Message], gone: Sequence[Message], room: int) -> Message:
    """The summaries there are, and the facts of what leaves, in at most a quarter of the room."""
    space = room // SUMMARY_SHARE - FRAME_TOKENS
    previous = "\n\n".join(read_summary(message) for message in messages if message.kind == "summary")
    if space < FRAME_TOKENS:
        return marker_message()
    return summary_message(write_extract(previous, gone, space), stand_in=bool(gone))
