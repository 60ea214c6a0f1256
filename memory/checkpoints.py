"""Which checkpoint a view starts from.

The oldest with which the view stays below its trigger, so that a summary prepared in the background takes effect
only when it is needed, and a larger window shows more of the conversation itself again: never a summary of what
would fit as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.budget import TokenBudget
from memory.policy import ContextPolicy
from memory.summary import summary_message
from memory.tokens import UNCALIBRATED, Calibration
from memory.types import Checkpoint
from memory.window import measure_room


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint and the estimate of the messages behind it, up to the question; None is the beginning."""

    checkpoint: Checkpoint | None
    tokens_after: int


def choose_checkpoint(
    candidates: Sequence[Candidate],
    policy: ContextPolicy,
    budget: TokenBudget,
    *,
    question_tokens: int,
    system_tokens: int,
    calibration: Calibration = UNCALIBRATED,
) -> Checkpoint | None:
    """The checkpoint of the oldest candidate whose view needs no cut; of the newest where each needs one.

    `candidates` are oldest first, all of one branch. What is needed to decide grows with the conversation, so a
    choice once left for a newer one is not come back to while budget and policy stay the same.
    """
    for candidate in candidates[:-1]:
        summary = summary_message(candidate.checkpoint.summary).tokens if candidate.checkpoint else 0
        room = measure_room(policy, budget, calibration, system_tokens=system_tokens, summary_tokens=summary)
        used = room.summary + candidate.tokens_after + question_tokens
        if used <= room.high(question_tokens, is_cut=False):
            return candidate.checkpoint
    return candidates[-1].checkpoint if candidates else None
