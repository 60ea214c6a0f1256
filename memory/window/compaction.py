"""Decides which messages the next summary covers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from memory.budget import TokenBudget
from memory.tokens import UNCALIBRATED, Calibration, estimate_text, total_tokens
from memory.turns import after_reply, before_question, safe_split, safe_split_after
from memory.types import Checkpoint, Message, last_position
from memory.window.cut import Room, find_cut, find_tail, measure_room
from memory.window.loading import NOTHING_LEFT_OUT, LeftOut
from memory.window.policy import ContextPolicy
from memory.window.view import prepare_history

Trigger = Literal["soft", "hard", "manual"]

LEAST_MANUAL_MESSAGES = 2
SPAN_FACTOR = 6
"""Each call sends prompt and previous summary again: a span this many times as long keeps that below a fifth."""
ONE_CALL_SHARE = 0.72
"""Share of `Room.body` that one call of a summariser with the same window reads: enough in a small window."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The stored messages from `first_position` to `last_position` become part of the next summary."""

    first_position: int
    last_position: int
    message_count: int
    kept_count: int
    span_tokens: int
    tokens_before: int
    """Summary and history before the compaction, as the model counts them."""
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """What a compaction is planned from. `messages` are those after the checkpoint, oldest first; pinned ones that it
    already covers may be among them."""

    messages: Sequence[Message]
    checkpoint: Checkpoint | None
    policy: ContextPolicy
    budget: TokenBudget
    calibration: Calibration = UNCALIBRATED
    system_tokens: int = 0
    question_tokens: int = 0
    left_out: LeftOut = NOTHING_LEFT_OUT
    turns_since_compaction: int | None = None
    manual: bool = False
    """Whether all but `keep_recent` messages are taken, at any pressure."""
    may_wait_for_more: bool = True
    """Whether more messages will come, for which a short span could wait."""


def plan_span(inputs: PlanInputs) -> CompactionPlan | None:
    """Return the compaction that is due after these messages; None if none is.

    Messages that the view has already cut are covered first, and exactly those, so that the history a model sees stays
    the same when the summary arrives. Otherwise, past the soft trigger, everything but the tail is covered. If nobody
    waits for the summary, a short span waits for more messages, because each call reads the previous summary again; an
    extract stands in until then. If no more messages come, all that the view has cut is summarised, however short. The
    cooldown delays compactions that are not needed to fit.
    """
    checkpoint, policy, calibration = inputs.checkpoint, inputs.policy, inputs.calibration
    left_out = inputs.left_out
    covered = checkpoint.last_position if checkpoint else -1
    messages = [
        message for message in inputs.messages if message.position is not None and message.position > covered
    ]
    if not messages or not (inputs.manual or policy.auto_compact):
        return None
    room = measure_room(
        policy,
        inputs.budget,
        calibration,
        system_tokens=inputs.system_tokens,
        checkpoint=checkpoint,
        has_left_out=bool(left_out.count),
    )
    prepared = prepare_history(messages, policy)
    split, trigger = _find_split(inputs, prepared, room)
    if not inputs.may_wait_for_more:
        split = split if trigger == "hard" else 0
    elif policy.prepares_ahead and not inputs.manual and not left_out.count:
        split = _worth_a_call(prepared, split, policy, room)
    end = last_position(prepared[:split])
    if left_out.count:
        end, trigger = max(end, left_out.last_position), trigger if split else "hard"
    span = [message for message in messages if (message.position or 0) <= end]
    if not (span or left_out.count) or (inputs.manual and len(span) < LEAST_MANUAL_MESSAGES):
        return None
    return CompactionPlan(
        first_position=covered + 1 if left_out.count else span[0].position or 0,
        last_position=end,
        message_count=len(span) + left_out.count,
        kept_count=len(messages) - len(span),
        span_tokens=calibration.apply(total_tokens(span) + left_out.tokens),
        tokens_before=calibration.apply(room.summary + total_tokens(prepared)),
        trigger=trigger,
    )


def _find_split(inputs: PlanInputs, prepared: tuple[Message, ...], room: Room) -> tuple[int, Trigger]:
    """Return (number of messages in the span, what triggered it)."""
    policy, question_tokens = inputs.policy, inputs.question_tokens
    if inputs.manual:
        return _manual_split(prepared, policy, room), "manual"
    made_at = inputs.checkpoint.made_at if inputs.checkpoint else None
    cut = find_cut(prepared, question_tokens, policy, room, made_at=made_at)
    if cut.start:
        return cut.start, "hard"
    if not policy.prepares_ahead:
        return 0, "soft"
    turns_since = inputs.turns_since_compaction
    is_cooling = turns_since is not None and turns_since < policy.cooldown_turns
    used = room.summary + total_tokens(prepared) + question_tokens
    if is_cooling or used < policy.soft_ratio * room.body:
        return 0, "soft"
    tail = find_tail(prepared, policy, room)
    gain = total_tokens(prepared[:tail])
    # A summary must be smaller than the messages that leave, or the view would not shrink.
    return (tail if gain > room.summary_cap + room.body // 20 else 0), "soft"


def _worth_a_call(prepared: tuple[Message, ...], split: int, policy: ContextPolicy, room: Room) -> int:
    """Return the split; 0 while the span is too short; an earlier one if it slightly exceeds one call."""
    one_call = int(ONE_CALL_SHARE * room.body)
    again = room.summary + estimate_text(policy.behaviour.prompt(policy.summary_form))
    size = total_tokens(prepared[:split])
    if size < min(SPAN_FACTOR * again, one_call):
        return 0
    # A span slightly over one call would need a second for a small rest; one of more than two calls goes at once.
    if size <= one_call or size > 2 * one_call:
        return split
    sums = itertools.accumulate(message.tokens for message in prepared[:split])
    fitting = sum(1 for _ in itertools.takewhile(lambda used: used <= one_call, sums))
    split = before_question(prepared, safe_split(prepared, fitting))
    return split or safe_split_after(prepared, after_reply(prepared, fitting))


def _manual_split(prepared: tuple[Message, ...], policy: ContextPolicy, room: Room) -> int:
    keep = min(policy.keep_recent, max(0, len(prepared) - LEAST_MANUAL_MESSAGES))
    asked = policy.model_copy(update={"keep_recent": keep})
    # For a manual compaction `keep_recent` alone decides; no tokens are reserved for the tail.
    return find_tail(prepared, asked, replace(room, summary=0, tail=0, reminder=None))
