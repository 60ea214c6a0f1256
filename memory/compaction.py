"""What the next summary covers, how it is asked for in pieces, and whether an answer may be used."""

from __future__ import annotations

import itertools
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memory.budget import TokenBudget
from memory.extractive import extract_missing
from memory.loader import prepare_history
from memory.loading import NOTHING_LEFT_OUT, LeftOut
from memory.policy import ContextPolicy
from memory.prompts import Hint, compaction_prompt, structured_prompt, summary_input
from memory.reminder import reminder_message
from memory.structured import SUMMARY_SCHEMA, read_structured, render_structured
from memory.summary import summary_message
from memory.tokens import UNCALIBRATED, Calibration, estimate_text, text_message, total_tokens
from memory.transcript import split_transcript
from memory.turns import safe_split, safe_split_after
from memory.types import Checkpoint, Message
from memory.window import Room, find_cut, find_tail, measure_room

Trigger = Literal["soft", "hard", "manual"]

CHUNK_TOKENS = 24_000
"""One summary reads at most this at a time, whatever the window: details in the middle of more get lost."""
LEAST_CHUNK_TOKENS = 200
TOLERANCE = 1.15
"""An answer this much over its limit is taken: the limit was told in words."""
LEAST_MANUAL_MESSAGES = 2
SPAN_FACTOR = 6
"""Each call sends the summary before and its prompt again: a span so many times as long keeps that below a fifth."""
ONE_CALL_SHARE = 0.72
"""What a summariser of the same window reads in one call, beside these: in a small window a span is that long."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The stored messages from `first_position` to `last_position` become part of the next summary."""

    first_position: int
    last_position: int
    message_count: int
    kept_count: int
    span_tokens: int
    tokens_before: int
    """Summary and history as the model counts, before."""
    trigger: Trigger


def plan_compaction(
    messages: Sequence[Message],
    checkpoint: Checkpoint | None,
    policy: ContextPolicy,
    budget: TokenBudget,
    *,
    calibration: Calibration = UNCALIBRATED,
    system_tokens: int = 0,
    question_tokens: int = 0,
    left_out: LeftOut = NOTHING_LEFT_OUT,
    turns_since_compaction: int | None = None,
    manual: bool = False,
    is_patient: bool = True,
) -> CompactionPlan | None:
    """The compaction that is due after these messages, those behind the checkpoint; None where none is.

    What the view has cut already is covered first, exactly, so that the history a model sees stays the same when
    the summary arrives. Else, past the soft trigger, all but the tail. Where nobody waits for the summary, a short
    span waits for more, for each call takes the summary before again; an extract stands in until then. Where
    nothing more comes (not `is_patient`) what the view has cut is summarised, however short. `manual` takes all
    but `keep_recent` messages, at whatever pressure. The cooldown holds back what is not needed to fit. Pinned
    messages that the checkpoint covers already may be among `messages`.
    """
    covered = checkpoint.last_position if checkpoint else -1
    messages = [
        message for message in messages if message.position is not None and message.position > covered
    ]
    if not messages or not (manual or policy.auto_compact):
        return None
    summary_tokens = summary_message(checkpoint.summary).tokens if checkpoint else 0
    room = measure_room(
        policy,
        budget,
        calibration,
        system_tokens=system_tokens,
        summary_tokens=summary_tokens,
        reminder=reminder_message(checkpoint.reminder) if checkpoint else None,
    )
    room = room.with_stand_in() if left_out.count else room
    prepared = prepare_history(messages, policy)
    made_at = checkpoint.made_at if checkpoint else None
    split, trigger = _find_split(
        prepared, policy, room, question_tokens, manual, turns_since_compaction, made_at
    )
    if not is_patient:
        split = split if trigger == "hard" else 0
    elif policy.prepares_ahead and not manual and not left_out.count:
        split = _worth_a_call(prepared, split, policy, room)
    end = _position_before(prepared, split)
    if left_out.count:
        end, trigger = max(end or 0, left_out.last_position), trigger if split else "hard"
    span = [message for message in messages if end is not None and (message.position or 0) <= end]
    if end is None or not (span or left_out.count) or (manual and len(span) < LEAST_MANUAL_MESSAGES):
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


def _find_split(
    prepared: tuple[Message, ...],
    policy: ContextPolicy,
    room: Room,
    question_tokens: int,
    manual: bool,
    turns_since: int | None,
    made_at: datetime | None,
) -> tuple[int, Trigger]:
    """How many messages the span takes, and what set it off."""
    if manual:
        return _manual_split(prepared, policy, room), "manual"
    cut = find_cut(prepared, question_tokens, policy, room, made_at=made_at)
    if cut.start:
        return cut.start, "hard"
    if not policy.prepares_ahead:
        return 0, "soft"
    is_cooling = turns_since is not None and turns_since < policy.cooldown_turns
    used = room.summary + total_tokens(prepared) + question_tokens
    if is_cooling or used < policy.soft_ratio * room.body:
        return 0, "soft"
    tail = find_tail(prepared, policy, room)
    gain = total_tokens(prepared[:tail])
    return (tail if gain > room.summary_cap + room.body // 20 else 0), "soft"


def _worth_a_call(prepared: tuple[Message, ...], split: int, policy: ContextPolicy, room: Room) -> int:
    """The split; 0 while what leaves is too little; an earlier one where it is a little more than one call reads."""
    one_call = int(ONE_CALL_SHARE * room.body)
    again = room.summary + estimate_text(summary_prompt(policy))
    size = total_tokens(prepared[:split])
    if size < min(SPAN_FACTOR * again, one_call):
        return 0
    if size <= one_call or size > 2 * one_call:
        return split
    sums = itertools.accumulate(message.tokens for message in prepared[:split])
    fitting = sum(1 for _ in itertools.takewhile(lambda used: used <= one_call, sums))
    return safe_split(prepared, fitting) or safe_split_after(prepared, fitting)


def _manual_split(prepared: tuple[Message, ...], policy: ContextPolicy, room: Room) -> int:
    keep = min(policy.keep_recent, max(0, len(prepared) - LEAST_MANUAL_MESSAGES))
    asked = policy.model_copy(update={"keep_recent": keep})
    return find_tail(prepared, asked, Room(room.body, room.trigger, 0, room.summary_cap, 0, room.recall))


def _position_before(prepared: tuple[Message, ...], split: int) -> int | None:
    return max(
        (message.position for message in prepared[:split] if message.position is not None), default=None
    )


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """One call of the summariser: a piece of the span, to be merged with the summary of what came before it."""

    number: int
    count: int
    transcript: str
    prompt: str
    max_output_tokens: int

    def messages(self, previous: str) -> tuple[Message, Message]:
        """`previous` is the answer to the request before this one; for the first, the checkpoint's summary."""
        return text_message("system", self.prompt), text_message(
            "user", summary_input(previous, self.transcript)
        )


def summary_requests(
    messages: Sequence[Message],
    *,
    previous: str,
    policy: ContextPolicy,
    window: TokenBudget,
    calibration: Calibration = UNCALIBRATED,
    hint: Hint = "general",
    keep: str = "",
) -> tuple[SummaryRequest, ...]:
    """The calls that summarise these messages, to be made one after the other, each within the summariser's `window`.

    Each message is read once. Empty where the window is too small for any, or there is nothing to say: the
    extractive summary takes over.
    """
    prompt = summary_prompt(policy, hint, keep)
    longest = max(estimate_text(previous), int(policy.summary_max_tokens * TOLERANCE))
    space = calibration.invert(window.input_tokens) * 9 // 10 - estimate_text(prompt) - longest - 40
    if space < LEAST_CHUNK_TOKENS:
        return ()
    chunks = split_transcript(messages, min(space, CHUNK_TOKENS))
    output = min(policy.summary_max_tokens * 5 // 4, window.output_tokens)
    return tuple(
        SummaryRequest(number, len(chunks), chunk, prompt, output)
        for number, chunk in enumerate(chunks, start=1)
    )


def summary_prompt(policy: ContextPolicy, hint: Hint = "general", keep: str = "") -> str:
    if policy.strategy == "structured":
        schema = json.dumps(policy.summary_schema or SUMMARY_SCHEMA, ensure_ascii=False)
        return structured_prompt(
            schema, max_tokens=policy.summary_max_tokens, keep=keep, custom=policy.compact_prompt
        )
    return compaction_prompt(
        hint, max_tokens=policy.summary_max_tokens, keep=keep, custom=policy.compact_prompt
    )


@dataclass(frozen=True, slots=True)
class Summary:
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """`reason` completes "The summary was not used: …"."""

    reason: str


def accept_summary(
    text: str, *, source: Sequence[Message], previous: str = "", policy: ContextPolicy
) -> Summary | Rejected:
    """The summariser's answer as it may be stored: cleaned, checked, and with the facts it left out word for word.

    `source` is what it summarised, with `previous`, the summary before.
    """
    body = _clean(text)
    if policy.strategy == "structured":
        fields = read_structured(body, policy.summary_schema)
        body = render_structured(fields, policy.summary_template, policy.summary_schema) if fields else body
    covered = total_tokens(source) + estimate_text(previous)
    reason = _find_fault(body, covered, policy.summary_max_tokens)
    if reason:
        return Rejected(reason)
    tokens = estimate_text(body)
    room = min(policy.summary_max_tokens * 3 // 2, covered - 1) - tokens
    missing = extract_missing(source, previous, body, min(room, policy.summary_max_tokens // 2))
    full = f"{body}\n\n{missing}" if missing else body
    return Summary(full, estimate_text(full))


def _clean(text: str) -> str:
    text = re.sub(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", "", text, flags=re.DOTALL).strip()
    fenced = re.fullmatch(r"```\w*\n(.*?)\n?```", text, flags=re.DOTALL)
    return fenced.group(1).strip() if fenced else text


def _find_fault(text: str, covered: int, max_tokens: int) -> str | None:
    tokens = estimate_text(text)
    if not text:
        return "the model returned nothing"
    if _is_garbage(text):
        return "the model returned something that is not a summary"
    if tokens > max_tokens * TOLERANCE:
        return f"it has {tokens:,} tokens where {max_tokens:,} are allowed"
    if tokens >= covered:
        return f"it has {tokens:,} tokens, not fewer than the {covered:,} it stands for"
    return None


def _is_garbage(text: str) -> bool:
    """Error pages and error objects, noise without words, and text that repeats itself."""
    start = text[:200].lstrip().lower()
    if start.startswith(("<!doctype", "<html", '{"error', "error:", "traceback (most recent")):
        return True
    letters = sum(char.isalnum() for char in text)
    if letters < len(text) * 0.3 or text.count("\ufffd") > len(text) // 50:
        return True
    data = text.encode("utf-8", "replace")
    return len(data) > 400 and len(zlib.compress(data)) < len(data) * 0.08
