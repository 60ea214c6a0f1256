"""Keeps each model call of a tool loop inside its budget. Says what has to be summarised without calling a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.budget import TokenBudget
from memory.summaries.extractive import write_extract
from memory.summaries.summary import EARLIER_TRUNCATED, FRAME_TOKENS, read_summary, summary_message
from memory.tokens import UNCALIBRATED, Calibration, estimate_text, total_tokens
from memory.truncate import (
    body_tokens,
    choose_pins,
    cut_message,
    cut_middle,
    find_question,
    is_fixed,
    is_frame,
    smart_truncate,
)
from memory.turns import bind_groups, repair_tool_calls
from memory.types import Message
from memory.window.cut import Room, measure_room
from memory.window.policy import ContextPolicy
from memory.window.view import check_fits


@dataclass(frozen=True, slots=True)
class Fits:
    """A request that may be sent. `was_truncated`: messages were dropped without a summary."""

    messages: tuple[Message, ...]
    was_truncated: bool = False


@dataclass(frozen=True, slots=True)
class NeedsCompaction:
    """A request over budget. Pass it to `ContextGuard.place` with a summary of `to_summarise` and `previous`, made by
    `policy`, or to `ContextGuard.fall_back`."""

    messages: tuple[Message, ...]
    to_summarise: tuple[Message, ...]
    previous: str
    policy: ContextPolicy


@dataclass(frozen=True, slots=True)
class ContextGuard:
    policy: ContextPolicy
    budget: TokenBudget
    calibration: Calibration = UNCALIBRATED
    tools_tokens: int = 0

    def check(self, messages: Sequence[Message], passed: int = 0) -> Fits | NeedsCompaction:
        """Return the request if it fits, or what has to be summarised first.

        `messages` is the whole request: the system prompt first, the question somewhere, tool steps after it. The first
        `passed` of them, and the question, come from an earlier check and are not examined again. Raise
        SystemPromptTooLarge or QuestionTooLarge if nothing would help.
        """
        if passed:
            cut = (*messages[:passed], *self._cut_single(tuple(messages[passed:]), is_old=False))
        else:
            cut = self._cut_single(_mark_question(messages))
        room = self._room(cut)
        if body_tokens(cut) <= room.body:
            return Fits(cut)
        return self._compact(tuple(message for message in cut if message.kind != "recall"), room)

    def fall_back(self, need: NeedsCompaction, reminder: Message | None = None) -> tuple[Message, ...]:
        """Return the request with an extract in place of the messages that leave."""
        covered = total_tokens(need.to_summarise) + estimate_text(need.previous)
        text = write_extract(
            need.previous, need.to_summarise, min(need.policy.summary_max_tokens, covered // 2)
        )
        return self.place(need, text, reminder, is_extract=True)

    def place(
        self,
        need: NeedsCompaction,
        summary: str,
        reminder: Message | None = None,
        *,
        is_extract: bool = False,
    ) -> tuple[Message, ...]:
        """Return the request with an accepted summary, or an extract, in place of the summarised messages."""
        # Compare identities, because two messages may have the same text.
        gone = {id(message) for message in need.to_summarise}
        rest = [message for message in need.messages if id(message) not in gone]
        system = [message for message in rest if is_fixed(message)]
        # The new summary and reminder replace the earlier ones.
        others = [message for message in rest if not is_frame(message)]
        summarised = summary_message(summary, stand_in=is_extract)
        behind = [reminder] if reminder else []
        body = self._room(need.messages).body
        return smart_truncate([*system, summarised, *behind, *others], body, self.policy.keep_recent)

    def _compact(self, messages: tuple[Message, ...], room: Room) -> Fits | NeedsCompaction:
        """Return what has to be summarised, or the truncated request. `messages` contain no recalled text, which can be
        recalled again."""
        leaving = self._choose_leaving(messages, room) if body_tokens(messages) > room.body else set()
        if not leaving or not self.policy.has_summary:
            return Fits(self._truncate(messages, leaving, room), was_truncated=True)
        return NeedsCompaction(
            messages=messages,
            to_summarise=tuple(message for index, message in enumerate(messages) if index in leaving),
            previous="\n\n".join(read_summary(message) for message in messages if message.kind == "summary"),
            policy=self._bounded_policy(room),
        )

    def _cut_single(self, messages: tuple[Message, ...], is_old: bool = True) -> tuple[Message, ...]:
        """Return the messages with overlong ones cut. `is_old`: they begin before the question."""
        limit = self.policy.message_char_limit
        old_limit = min(limit, self.policy.old_result_char_limit)
        cut: list[Message] = []
        for message in repair_tool_calls(messages):
            is_old = is_old and message.kind != "question"
            if is_fixed(message) or message.kind == "question":
                cut.append(message)
            elif message.role == "tool" and is_old:
                cut.append(cut_message(message, old_limit, cut_middle))
            else:
                cut.append(cut_message(message, limit))
        return tuple(cut)

    def _room(self, messages: Sequence[Message]) -> Room:
        """Return the room beside system prompt and tools. Raise ContextError if these and the question are too large
        alone."""
        system = sum(message.tokens for message in messages if is_fixed(message)) + self.tools_tokens
        question = sum(message.tokens for message in messages if message.kind == "question")
        check_fits(system, question, self.budget, self.calibration)
        return measure_room(self.policy, self.budget, self.calibration, system_tokens=system)

    def _bounded_policy(self, room: Room) -> ContextPolicy:
        """Return the policy with summaries limited to the room in this window."""
        # Two thirds, because an accepted summary may be half again as long as requested.
        longest = max(1, min(self.policy.summary_max_tokens, (room.summary_cap - FRAME_TOKENS) * 2 // 3))
        return self.policy.model_copy(update={"summary_max_tokens": longest})

    def _choose_leaving(self, messages: tuple[Message, ...], room: Room) -> set[int]:
        """Return the indexes of all messages but frame, question, pins and a tail: `keep_recent` messages in half of
        the room that the others leave."""
        question = next((index for index, message in enumerate(messages) if message.kind == "question"), None)
        staying = {index for index, message in enumerate(messages) if is_frame(message) or index == question}
        staying |= choose_pins(messages, room.body, question)
        fixed = sum(messages[index].tokens for index in staying if not is_fixed(messages[index]))
        left, count = (room.body - fixed) // 2, self.policy.keep_recent
        leaving: set[int] = set()
        groups = [group for group in bind_groups(messages) if group[0] not in staying]
        for start, end in reversed(groups):
            left -= sum(messages[index].tokens for index in range(start, end))
            count -= end - start
            # The newest group stays whatever its size, because the model continues from it.
            is_newest = (start, end) == groups[-1]
            # Everything older than a group that leaves goes, too, so that the rest has no gaps.
            if leaving or (not is_newest and (left < 0 or count < 0)):
                leaving.update(range(start, end))
        return leaving - staying

    def _truncate(self, messages: tuple[Message, ...], leaving: set[int], room: Room) -> tuple[Message, ...]:
        """Return the request without the messages that leave, with a mark in their place if there is no summary."""
        has_summary = any(message.kind == "summary" for message in messages)
        kept = [message for index, message in enumerate(messages) if index not in leaving]
        if leaving and not has_summary:
            first = next((index for index, message in enumerate(kept) if not is_fixed(message)), len(kept))
            kept.insert(first, summary_message(EARLIER_TRUNCATED))
        return smart_truncate(kept, room.body, self.policy.keep_recent)


def _mark_question(messages: Sequence[Message]) -> tuple[Message, ...]:
    at = find_question(messages)
    return tuple(
        replace(message, kind="question") if index == at and message.kind != "question" else message
        for index, message in enumerate(messages)
    )
