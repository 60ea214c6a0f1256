"""Finds where the visible part of a history begins, and how much room a view has.

The cut is found by replaying the earlier turns: at each turn whose request would have passed the trigger, everything
but a tail leaves at once. So the cut depends only on messages that do not change any more: the next turn replays to the
same cut, and its request begins with the same bytes.

The replay includes the cooldown, so that a tail that exceeds the trigger by itself is not compacted again each turn.
View and plan share the replay, so that they always agree.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory.budget import TokenBudget
from memory.summaries.reminder import reminder_message, shorten_reminder
from memory.summaries.summary import FRAME_TOKENS, checkpoint_message
from memory.tokens import Calibration
from memory.truncate import PINNED_SHARE
from memory.turns import (
    before_question,
    has_tool_calls,
    is_safe_split,
    reduce_turn,
    safe_split,
    safe_split_after,
    starts_turn,
)
from memory.types import Checkpoint, Message, last_position
from memory.window.policy import ContextPolicy

RECALL_SHARE = 0.8
SUMMARY_SHARE = 4
"""A summary takes at most a quarter of the budget, whatever its own limit."""
ASKED_SHARE = 0.08
"""Share of the budget that a summary is asked to take; an accepted one may be half again as long."""
LEAST_SUMMARY_LIMIT = 64
# If a budget is for one request, verbatim text for the question comes before a record of everything.
ONE_OFF_SUMMARY_SHARE = 16
ONE_OFF_STAND_IN_SHARE = 32
LEAST_STAND_IN = 96
# If nothing of the conversation was cut, only other conversations can be recalled, which is kept short.
UNCUT_RECALL_SHARE = 20
LEAST_UNCUT_RECALL = 1_000
LEAST_MESSAGES = 4
"""Newest messages that stay in the smallest tail, whatever their size."""
REMINDER_SHARE = 12
"""A reminder takes at most a twelfth of the budget."""


@dataclass(frozen=True, slots=True)
class Room:
    """The budget of one view, in estimates, so that stored token counts can be added directly."""

    body: int
    """Tokens for summary, history, recall and question together."""
    trigger: float
    """The share of `body` at which the view is cut."""
    summary: int
    """Tokens of the present checkpoint's summary; 0 without one. An extract in place of messages that were left out may
    take as much as any summary."""
    summary_cap: int
    """Most tokens of any summary."""
    tail: int
    """Tokens of the newest history that a cut leaves."""
    recall: int
    """Tokens kept free for recalled text."""
    recall_once: int
    """Most tokens that one question recalls."""
    reminder: Message | None = None
    """The reminder as far as it fits; `body` is what is left beside it."""
    stand_in_cap: int = 0
    """Most tokens of an extract in place of a summary, if there is no summary at all."""
    is_one_off: bool = False
    """Whether no later request builds on this view."""
    has_left_out: bool = False
    """Whether messages before the loaded ones were left out."""

    @property
    def keeps_least(self) -> bool:
        """Return whether only the smallest tail stays even if more would fit, because recall takes the rest."""
        return self.is_one_off and self.has_left_out

    @property
    def recall_uncut(self) -> int:
        if self.is_one_off:
            return self.recall_once
        return min(self.recall_once, max(LEAST_UNCUT_RECALL, self.body // UNCUT_RECALL_SHARE))

    def recall_beside(self, question: int, tail: int) -> int:
        left = self.body - self.summary_cap - tail - question
        return max(0, min(self.recall, int(RECALL_SHARE * left)))

    def high(self, question: int, *, is_cut: bool) -> int:
        """Return the tokens of summary, history and question at which the view is cut. After a cut, recall has its
        share."""
        trigger = int(self.trigger * self.body)
        # Until something is cut, there is nothing of this conversation to recall.
        if not is_cut and not self.summary:
            return trigger
        return min(trigger, self.body - self.recall_beside(question, self.tail))


def measure_room(
    policy: ContextPolicy,
    budget: TokenBudget,
    calibration: Calibration,
    *,
    system_tokens: int,
    checkpoint: Checkpoint | None = None,
    reminder: Message | None = None,
    has_left_out: bool = False,
    is_one_off: bool = False,
) -> Room:
    """Return the room of a view. `system_tokens` is the estimate of system prompt and tool schemas together, `reminder`
    replaces the checkpoint's own."""
    summary_tokens = checkpoint_message(checkpoint).tokens if checkpoint else 0
    reminder = reminder or (reminder_message(checkpoint.reminder) if checkpoint else None)
    whole = calibration.invert(max(0, budget.input_after(calibration.apply(system_tokens))))
    reminder = shorten_reminder(reminder, whole // REMINDER_SHARE) if reminder else None
    body = whole - (reminder.tokens if reminder else 0)
    longest = policy.summary_max_tokens * 3 // 2 + FRAME_TOKENS
    cap = min(longest, body // (ONE_OFF_SUMMARY_SHARE if is_one_off else SUMMARY_SHARE))
    stand_in = min(longest, max(LEAST_STAND_IN, body // ONE_OFF_STAND_IN_SHARE)) if is_one_off else cap
    cap = policy.behaviour.summary_cap(cap, summary_tokens)
    tail = min(calibration.invert(policy.tail_tokens(budget)), body // 3)
    if is_one_off:
        tail = min(tail, int(policy.reserve_ratio * body))
    # Without automatic compaction a view is cut only if it does not fit.
    trigger = policy.trigger if policy.auto_compact else 1.0
    recall = calibration.invert(policy.recall_budget)
    once = recall if is_one_off else min(recall, calibration.invert(policy.recall_tokens))
    stand_in = min(stand_in, cap)
    summary = cap if has_left_out else min(summary_tokens, cap)
    return Room(body, trigger, summary, cap, tail, recall, once, reminder, stand_in, is_one_off, has_left_out)


def summary_limit(policy: ContextPolicy, budget_tokens: int) -> int:
    """Return the `summary_max_tokens` to request, so that a view of this budget shows the summary uncut, and reading it
    again in the next call does not cost more than it saves.

    `budget_tokens` is an estimate.
    """
    return min(policy.summary_max_tokens, max(LEAST_SUMMARY_LIMIT, int(ASKED_SHARE * budget_tokens)))


@dataclass(frozen=True, slots=True)
class Cut:
    """`messages[start:]` stay; of these, the turns before `text_only` keep only user text and final reply.

    `asked` is the question for which the last messages left; from there on requests share their beginning.
    """

    start: int = 0
    text_only: int = 0
    asked: int = 0

    def asked_position(self, messages: Sequence[Message]) -> int:
        """Return the position of the question for which the last messages left; the next free one if it is new."""
        return last_position(messages[: self.asked]) + 1


def find_cut(
    messages: Sequence[Message],
    question_tokens: int,
    policy: ContextPolicy,
    room: Room,
    *,
    made_at: datetime | None = None,
) -> Cut:
    """Return the cut for a request that asks one more question after these messages, in linear time.

    `made_at` is when the previous compaction finished: earlier questions are its tail, which is cut only if it does not
    fit, and the cooldown counts from there.
    """
    replay = _Replay(messages, policy, room)
    # Most requests end here, without a replay of all turns.
    if not room.keeps_least and replay.always_fitted(question_tokens):
        return Cut()
    if made_at is not None:
        replay.since = 0
    # No earlier request had a one-off budget, so there is no prefix to share.
    for turn in () if room.is_one_off else replay.starts:
        replay.ask(turn, messages[turn].tokens, is_settled=_was_before(messages[turn], made_at))
    replay.ask(len(messages), question_tokens)
    return replay.cut


def _was_before(message: Message, moment: datetime | None) -> bool:
    return moment is not None and message.created_at is not None and message.created_at <= moment


def find_tail(messages: Sequence[Message], policy: ContextPolicy, room: Room) -> int:
    """Return where the tail begins that a compaction of these messages leaves, in linear time."""
    return _Replay(messages, policy, room).tail_start(len(messages))


class _Replay:
    def __init__(self, messages: Sequence[Message], policy: ContextPolicy, room: Room) -> None:
        self.messages = messages
        self.policy = policy
        self.room = room
        self.starts = [index for index, message in enumerate(messages) if starts_turn(message)]
        self.sums = _running(message.tokens for message in messages)
        self.pinned = _running(message.tokens if message.pinned else 0 for message in messages)
        self.has_tool_calls = has_tool_calls(messages)
        self.reduced = _reduced_sums(messages, self.starts) if self.has_tool_calls else self.sums
        self.cut = Cut()
        self.asked = 0
        # Nothing was compacted yet, so no cooldown applies.
        self.since = policy.cooldown_turns
        self.end, self.question = 0, 0

    def always_fitted(self, question: int) -> bool:
        """Return whether every earlier request fitted, which is certain if this one fits and the history only grew."""
        # When tool chains are reduced or turns dropped, an earlier request may have been longer than this one.
        if self.has_tool_calls or self.policy.turn_limit:
            return False
        # Recall takes most without a question, so no earlier request had a lower limit than this.
        return self.room.summary + self.sums[-1] + question <= self.room.high(0, is_cut=False)

    def ask(self, end: int, question: int, *, is_settled: bool = False) -> None:
        """Replay one request: `messages[:end]` as history, then a question of that many tokens."""
        self.end, self.question = end, question
        self.since += 0 if is_settled else 1
        self._reduce_old(at_once=False)
        if self.has_too_many_turns or self.is_over_limit:
            start = self.cut.start
            self.policy.behaviour.plan_cut(self)
            if self.cut.start != start:
                self.since = 0
                self.cut = replace(self.cut, asked=end)
                self._reduce_old(at_once=True)
        self.asked += 1

    @property
    def has_too_many_turns(self) -> bool:
        return 0 < self.policy.turn_limit < self.turn_count

    @property
    def is_over_limit(self) -> bool:
        return self._used() > self._limit()

    @property
    def turn_count(self) -> int:
        return len(self._turns())

    def drop_older_half(self) -> None:
        turns = self._turns()
        if len(turns) > 1:
            self.cut = replace(self.cut, start=turns[(len(turns) + 1) // 2])

    def drop_tool_chains(self) -> bool:
        was_whole = self.cut.text_only < self.end
        if was_whole:
            self.cut = replace(self.cut, text_only=self.end)
        return was_whole

    def keep_tail(self) -> None:
        self.cut = replace(self.cut, start=max(self.cut.start, self.tail_start(self.end)))

    def _reduce_old(self, *, at_once: bool) -> None:
        """Move the border of whole turns: in growing steps, or with a cut, which breaks the cached prefix anyway."""
        if not self.has_tool_calls:
            return
        whole = self.policy.full_turns
        border = bisect.bisect_left(self.starts, self.cut.text_only)
        step = 1 if at_once else max(whole, self.asked // 4)
        if self.asked - whole - border >= step:
            self.cut = replace(self.cut, text_only=self.starts[self.asked - whole])

    def _limit(self) -> int:
        if self.room.keeps_least and not self.cut.start:
            return 0
        # During the cooldown only what does not fit at all is cut.
        if self.since <= self.policy.cooldown_turns and not self.room.is_one_off:
            return self.room.body
        return self.room.high(self.question, is_cut=self.cut.start > 0)

    def _used(self) -> int:
        start, text_only = self.cut.start, max(self.cut.start, self.cut.text_only)
        history = self.reduced[text_only] - self.reduced[start] + self.sums[self.end] - self.sums[text_only]
        # Pins before the cut stay in view, as far as `choose_pins` allows.
        pins = min(self.pinned[start], int(self.room.body * PINNED_SHARE))
        # Reserve the room of the summary that the cut messages will have.
        summary = self.room.summary_cap if start else self.room.summary
        return summary + pins + history + self.question

    def _turns(self) -> list[int]:
        low = bisect.bisect_left(self.starts, self.cut.start)
        return self.starts[low : bisect.bisect_left(self.starts, self.end)]

    def tail_start(self, end: int) -> int:
        """Return where the tail begins: `keep_recent` messages or `room.tail` tokens, whichever is longer, starting
        with a turn if possible. If no later request builds on the view, whichever is shorter."""
        by_tokens = bisect.bisect_left(self.sums, self.sums[end] - self.room.tail, hi=end)
        by_count = max(0, end - self.policy.keep_recent)
        if self.room.is_one_off:
            return safe_split(
                self.messages, min(max(by_tokens, by_count), max(by_count, end - LEAST_MESSAGES))
            )
        wanted = min(by_count, by_tokens)
        turn = bisect.bisect_right(self.starts, wanted) - 1
        if turn >= 0 and self.starts[turn] > self.cut.start and self._fits_whole(self.starts[turn], end):
            return self.starts[turn]
        safe = before_question(self.messages, safe_split(self.messages, wanted))
        return safe if safe > self.cut.start else self._after(wanted, end)

    def _fits_whole(self, start: int, end: int) -> bool:
        """Return whether a tail from the start of its turn leaves half of the way to the trigger for later messages."""
        return self.sums[end] - self.sums[start] <= max(self.room.tail, self.room.high(0, is_cut=True) // 2)

    def _after(self, wanted: int, end: int) -> int:
        if wanted <= self.cut.start or is_safe_split(self.messages, wanted):
            return self.cut.start
        return min(safe_split_after(self.messages, wanted), end)


def _running(values: Iterable[int]) -> list[int]:
    return [0, *itertools.accumulate(values)]


def _reduced_sums(messages: Sequence[Message], starts: Sequence[int]) -> list[int]:
    """Return sums like `_running`, with each turn at its size without tool chains; exact only at the borders of
    turns."""
    sums = [0]
    for start, end in itertools.pairwise(sorted({0, *starts, len(messages)})):
        size = sum(message.tokens for message in reduce_turn(messages[start:end]))
        sums += [sums[start] + size] * (end - start)
    return sums
