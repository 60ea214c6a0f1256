"""Strategy `turns` (CowAgent): whole turns leave, the older half at a time."""

from __future__ import annotations

from memory.strategies.checkpoint import CheckpointStrategy
from memory.strategies.protocol import CutReplay

FEW_TURNS = 5
"""With fewer turns, tool chains are dropped before a turn is."""


class TurnsStrategy(CheckpointStrategy):
    default_max_turns: int = 20
    prepares_ahead: bool = False

    def plan_cut(self, replay: CutReplay) -> None:
        if replay.has_too_many_turns:
            replay.drop_older_half()
        while replay.is_over_limit:
            if replay.turn_count < FEW_TURNS and replay.drop_tool_chains():
                continue
            if replay.turn_count < 2:
                break
            replay.drop_older_half()
