"""Chooses the first message of a branch to load: all if a request can hold them, else its newest part."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory.budget import TokenBudget
from memory.tokens import Calibration
from memory.types import Message
from memory.window.policy import ContextPolicy

STEP_SHARE = 8
"""Beyond the tail at most an eighth of the budget is loaded, to find a start that stays the same for some turns."""
TAIL_SHARE = 3
SAMPLE_NEWEST = SAMPLE_OLDER = 16
"""Messages that are sampled from those left out, for the extract that replaces their summary."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The messages between a checkpoint and those loaded: too many for a request, so only a sample was read."""

    count: int = 0
    last_position: int = -1
    tokens: int = 0
    """A lower bound: the messages whose sizes were read."""
    sample: tuple[Message, ...] = ()


NOTHING_LEFT_OUT = LeftOut()


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """Limits in estimates, so that stored token counts can be added directly."""

    window: int
    """Most tokens of a request."""
    uncut: int
    """Most tokens of a view that was never compacted; above that, everything but a tail leaves."""
    tail: int
    keep_recent: int

    @classmethod
    def of(cls, policy: ContextPolicy, budget: TokenBudget, calibration: Calibration) -> LoadLimits:
        window = calibration.invert(budget.input_tokens)
        trigger = policy.trigger if policy.auto_compact else 1.0
        tail = min(calibration.invert(policy.tail_tokens(budget)), window // TAIL_SHARE)
        return cls(window, int(window * trigger), tail, policy.keep_recent)


class StoredSize(NamedTuple):
    """The fields of a stored message that choosing a start needs."""

    position: int
    tokens: int
    role: str
    kind: str

    @property
    def starts_turn(self) -> bool:
        return self.role == "user" and self.kind == "message"


def choose_start(newest_first: Sequence[StoredSize], limits: LoadLimits) -> int:
    """Return the position of the oldest message to load, if a request cannot hold them all.

    Load at least the tail, from the beginning of a turn. Of the possible positions, the one across the largest power of
    two stays possible for the most turns, and so keeps the beginning of the request the same.
    """
    sums = list(itertools.accumulate(size.tokens for size in newest_first))
    least = min(max(bisect.bisect_left(sums, limits.tail), limits.keep_recent - 1), len(sums) - 1)
    most = max(sums[least], limits.tail + limits.window // STEP_SHARE)
    reach = range(least, bisect.bisect_right(sums, most))
    turns = [at for at in reach if newest_first[at].starts_turn]
    # A tool result at the beginning would lack its call.
    chosen = turns or [at for at in reach if newest_first[at].role != "tool"] or [least]
    return newest_first[max(chosen, key=lambda at: (_roundness(newest_first, at), at))].position


def _roundness(newest_first: Sequence[StoredSize], at: int) -> int:
    """Return the bit length of the largest power of two with a multiple between the previous turn and this one."""
    older = itertools.islice(newest_first, at + 1, None)
    before = next((size.position for size in older if size.starts_turn), 0)
    return (newest_first[at].position ^ before).bit_length()


def sample_positions(first: int, last: int) -> list[int]:
    """Return the newest of these positions, and as many spread evenly over the older ones."""
    newest = range(max(first, last - SAMPLE_NEWEST + 1), last + 1)
    older = newest.start - first
    count = min(SAMPLE_OLDER, older)
    return [*(first + at * older // count for at in range(count)), *newest]
