"""Fits a conversation into its budget at once, without a model call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from memory.budget import TokenBudget
from memory.errors import ContextError, QuestionTooLarge, SystemPromptTooLarge
from memory.summaries.summary import (
    EARLIER_TRUNCATED,
    FRAME_TOKENS,
    MARKER_TOKENS,
    bounded_summary,
    summary_message,
)
from memory.tokens import UNCALIBRATED, Calibration, total_tokens
from memory.truncate import choose_pins, cut_message, cut_middle, squeeze_messages, without_leading_replies
from memory.turns import reduce_turns, repair_tool_calls
from memory.types import Checkpoint, Message, last_position
from memory.window.cut import Cut, Room, find_cut, measure_room
from memory.window.loading import NOTHING_LEFT_OUT, LeftOut
from memory.window.policy import ContextPolicy

LEAST_SUMMARY_TOKENS = 24
RECALLING_QUESTIONS = 3
"""In a small window, at least this many questions have room for their recall before a cut must make more."""
Recalled = Mapping[str, Message]
"""Recalled messages by the id of the question that they precede."""
NOTHING: Recalled = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dropped:
    """Messages that are neither in the view nor in a checkpoint; the next compaction covers them."""

    last_position: int | None
    message_count: int


@dataclass(frozen=True, slots=True)
class ViewParts:
    """Tokens of each part as the model counts them; they add up to `total`."""

    system: int
    profile: int
    tools: int
    summary: int
    history: int
    recall: int
    question: int

    @property
    def total(self) -> int:
        fixed = self.system + self.profile + self.tools
        return fixed + self.summary + self.history + self.recall + self.question


@dataclass(frozen=True, slots=True)
class View:
    """The messages of a model call. `history` is in order, without gaps except for pins at its beginning."""

    system: Message
    profile: Message | None
    """What is known about the user; None if there is nothing, or no room for it."""
    checkpoint: Checkpoint | None
    summary: Message | None
    """The checkpoint's summary as it is sent, or the stand-in for a summary that is not written yet."""
    reminder: Message | None
    """Sent after the summary until the next compaction."""
    history: tuple[Message, ...]
    question: Message
    dropped: Dropped | None
    original_count: int
    """Stored messages that this view represents, without the question."""
    budget_tokens: int
    recall_tokens: int
    """Most tokens that this question may recall, as the model counts."""
    recall_room: int
    """Most tokens that this and earlier questions may have recalled together."""
    recalled_from: int
    """The position from which earlier recalls are still shown: the last cut removed those before it."""
    tools_tokens: int
    calibration: Calibration
    notes: tuple[Message, ...] = ()
    """Messages that hooks add to this request only, right before the question."""

    @property
    def has_extract(self) -> bool:
        """Return whether an extract replaces the dropped messages, and not only a mark that they are missing."""
        return (
            self.dropped is not None
            and self.summary is not None
            and EARLIER_TRUNCATED not in self.summary.text
        )

    @property
    def was_compacted(self) -> bool:
        return self.checkpoint is not None or self.dropped is not None

    @property
    def compacted_count(self) -> int:
        """Return how many stored messages are left in `history`, including pins and without the question."""
        return sum(1 for message in self.history if message.position is not None or message.id is not None)

    def messages(self, recall: Message | None = None, earlier: Recalled = NOTHING) -> tuple[Message, ...]:
        """Return the request: system prompt, profile, summary, reminder, history with the `earlier` recalls of its
        questions, this question's recall, notes, question."""
        frame = (message for message in (self.profile, self.summary, self.reminder) if message)
        recalled = (recall,) if recall else ()
        history = self._history_with(earlier) if earlier else self.history
        return (self.system, *frame, *history, *recalled, *self.notes, self.question)

    def _history_with(self, earlier: Recalled) -> Iterator[Message]:
        for message in self.history:
            if message.id is not None and message.id in earlier:
                yield earlier[message.id]
            yield message

    def parts(self, recall: Message | None = None, earlier: Recalled = NOTHING) -> ViewParts:
        sizes = (
            self.system.tokens,
            self.profile.tokens if self.profile else 0,
            self.tools_tokens,
            total_tokens([message for message in (self.summary, self.reminder) if message]),
            total_tokens(self.history),
            total_tokens([*earlier.values(), *((recall,) if recall else ()), *self.notes]),
            self.question.tokens,
        )
        return ViewParts(*self.calibration.apply_to_parts(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewInputs:
    """What a view is fitted from. `messages` are those after the checkpoint, oldest first, perhaps preceded by pinned
    ones that it covers. `left_out` are the messages between, of which only a sample was loaded."""

    system: Message
    checkpoint: Checkpoint | None
    messages: Sequence[Message]
    question: Message
    policy: ContextPolicy
    budget: TokenBudget
    calibration: Calibration = UNCALIBRATED
    tools_tokens: int = 0
    left_out: LeftOut = NOTHING_LEFT_OUT
    reminder: Message | None = None
    """Replaces the checkpoint's own."""
    notes: tuple[Message, ...] = ()
    """Messages that hooks add to this request only."""
    profile: Message | None = None
    """Left out if the question fits only without it."""
    is_one_off: bool = False
    """Whether only this request has this budget. It includes the system prompt, and nothing is kept for a cached
    prefix, so that messages that leave make as much room for recall as possible."""


def fit_view(inputs: ViewInputs) -> View:
    """Return the view for one more question.

    Deterministic and stable: with more messages appended it begins with the same bytes until it passes the trigger;
    then many leave at once. Raise SystemPromptTooLarge or QuestionTooLarge.
    """
    system, checkpoint, messages = inputs.system, inputs.checkpoint, inputs.messages
    policy, budget, calibration = inputs.policy, inputs.budget, inputs.calibration
    left_out, is_one_off, profile = inputs.left_out, inputs.is_one_off, inputs.profile
    asked_tokens = inputs.question.tokens + total_tokens(inputs.notes)
    system_tokens = system.tokens + inputs.tools_tokens
    if profile and _fits(system_tokens + profile.tokens, asked_tokens, budget, calibration):
        system_tokens += profile.tokens
    else:
        profile = None
    frame = system.tokens + (profile.tokens if profile else 0)
    left = _beside(frame, budget, calibration) if is_one_off else budget
    room = measure_room(
        policy,
        left,
        calibration,
        system_tokens=system_tokens,
        checkpoint=checkpoint,
        reminder=inputs.reminder,
        has_left_out=bool(left_out.count),
        is_one_off=is_one_off,
    )
    check_fits(system_tokens, asked_tokens, left, calibration)
    prepared = prepare_history(messages, policy)
    made_at = checkpoint.made_at if checkpoint else None
    cut = find_cut(prepared, asked_tokens, policy, room, made_at=made_at)
    cut = _past_pins(cut, prepared, checkpoint, room, asked_tokens)
    gone, history = _select(prepared, cut, room, asked_tokens, policy.keep_recent)
    missing = len(gone) + left_out.count
    summary = _write_summary(checkpoint, [*left_out.sample, *gone], missing, room, asked_tokens, policy)
    # Without a summary in front, a reply that lost its question would come first.
    if missing and summary is None:
        history = without_leading_replies(history)
    used = total_tokens(history) + asked_tokens + (summary.tokens if summary else 0)
    free = max(0, room.body - used)
    recall = room.recall_once if missing or checkpoint else room.recall_uncut
    recalling = 1 if is_one_off else RECALLING_QUESTIONS
    return View(
        system=system,
        profile=profile,
        checkpoint=checkpoint,
        summary=summary,
        reminder=room.reminder if summary else None,
        history=history,
        question=inputs.question,
        dropped=_dropped(messages, gone, history, left_out) if missing else None,
        original_count=_count_original(messages, checkpoint) + left_out.count,
        budget_tokens=budget.input_tokens,
        recall_tokens=calibration.apply(min(recall, free // recalling)),
        recall_room=calibration.apply(free),
        recalled_from=cut.asked_position(prepared),
        tools_tokens=inputs.tools_tokens,
        calibration=calibration,
        notes=inputs.notes,
    )


def _beside(frame_tokens: int, budget: TokenBudget, calibration: Calibration) -> TokenBudget:
    """Return what remains of a budget that includes the system prompt. Tool schemas have the reserve."""
    frame = calibration.apply(frame_tokens)
    if frame >= budget.input_tokens:
        raise SystemPromptTooLarge(frame, budget.input_tokens)
    return replace(budget, input_limit=budget.input_tokens - frame)


def check_fits(
    system_tokens: int, question_tokens: int, budget: TokenBudget, calibration: Calibration
) -> None:
    """Raise an error, before any call, if no compaction can make the request fit. Tokens are estimates."""
    system, question = calibration.apply(system_tokens), calibration.apply(question_tokens)
    room = budget.input_after(system)
    if room <= 0 or (question > room and question <= budget.input_tokens and system > question):
        raise SystemPromptTooLarge(system, budget.input_tokens + budget.reserve_tokens - question)
    if question_tokens > calibration.invert(room):
        raise QuestionTooLarge(question, room)


def _fits(system_tokens: int, question_tokens: int, budget: TokenBudget, calibration: Calibration) -> bool:
    try:
        check_fits(system_tokens, question_tokens, budget, calibration)
    except ContextError:
        return False
    return True


def prepare_history(messages: Sequence[Message], policy: ContextPolicy) -> tuple[Message, ...]:
    """Return stored messages as they may be sent: calls repaired, old tool results and overlong messages cut."""
    return tuple(_cut_long(message, policy) for message in repair_tool_calls(messages))


def _cut_long(message: Message, policy: ContextPolicy) -> Message:
    # Hardly any text has eight characters per token, so a message this small need not be measured.
    if message.tokens < policy.old_result_char_limit // 8:
        return message
    if message.role == "tool":
        return cut_message(message, min(policy.old_result_char_limit, policy.message_char_limit), cut_middle)
    return cut_message(message, policy.message_char_limit)


def _past_pins(
    cut: Cut, prepared: tuple[Message, ...], checkpoint: Checkpoint | None, room: Room, question_tokens: int
) -> Cut:
    """Return the cut after pinned messages that the checkpoint covers: they are not part of the tail if not everything
    fits."""
    behind = sum(map(checkpoint.covers, prepared)) if checkpoint else 0
    if behind <= cut.start or total_tokens(prepared) <= room.body - question_tokens - room.summary:
        return cut
    return replace(cut, start=behind, text_only=max(behind, cut.text_only))


def _select(
    prepared: tuple[Message, ...], cut: Cut, room: Room, question_tokens: int, keep_recent: int
) -> tuple[list[Message], tuple[Message, ...]]:
    """Return (dropped, kept): pins from before the cut, then the tail, inside the room."""
    before, tail = prepared[: cut.start], _reduce_until(prepared, cut)
    pins = choose_pins(before, room.body, question_tokens=question_tokens) if before else set()
    gone = [message for index, message in enumerate(before) if index not in pins]
    pinned = [before[index] for index in sorted(pins)]
    free = room.body - question_tokens - (room.summary_cap if gone else room.summary) - total_tokens(pinned)
    # If the tail itself loses messages, the summary takes all that it may.
    if not gone and total_tokens(tail) > free:
        free -= room.summary_cap - room.summary
    squeezed, kept = squeeze_messages(tail, max(0, free), keep_recent)
    return [*gone, *squeezed], (*pinned, *kept)


def _reduce_until(prepared: tuple[Message, ...], cut: Cut) -> tuple[Message, ...]:
    if cut.text_only <= cut.start:
        return prepared[cut.start :]
    return (*reduce_turns(prepared[cut.start : cut.text_only]), *prepared[cut.text_only :])


def _write_summary(
    checkpoint: Checkpoint | None,
    gone: list[Message],
    missing: int,
    room: Room,
    question_tokens: int,
    policy: ContextPolicy,
) -> Message | None:
    """Return the checkpoint's summary with a stand-in for messages that no checkpoint covers yet, or None."""
    if not checkpoint and not missing:
        return None
    space = min(
        room.stand_in_cap if missing and not checkpoint else room.summary_cap, room.body - question_tokens
    )
    text_space = space - FRAME_TOKENS
    if text_space < LEAST_SUMMARY_TOKENS:
        return summary_message(EARLIER_TRUNCATED) if space >= MARKER_TOKENS else None
    previous = checkpoint.summary if checkpoint else ""
    if not missing:
        is_extract = checkpoint is not None and checkpoint.is_extract
        return summary_message(bounded_summary(previous, text_space), stand_in=is_extract)
    return policy.behaviour.stand_in(previous, gone, text_space)


def _count_original(messages: Sequence[Message], checkpoint: Checkpoint | None) -> int:
    """Return the number of messages that the view represents. The checkpoint counts the pinned ones that it covers."""
    if checkpoint is None:
        return len(messages)
    return checkpoint.message_count + sum(not checkpoint.covers(message) for message in messages)


def _dropped(
    messages: Sequence[Message], gone: list[Message], history: tuple[Message, ...], left_out: LeftOut
) -> Dropped:
    last = max(last_position(gone), left_out.last_position)
    kept = {message.position for message in history}
    span = [message for message in messages if message.position is not None and message.position <= last]
    lost = [message for message in span if message.position not in kept]
    return Dropped(
        last_position=last if last >= 0 else None,
        message_count=len(lost) + left_out.count,
    )
