"""The strategies by name. A new strategy needs a module beside this one and its name in each of the two lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from memory.strategies.checkpoint import CheckpointStrategy
from memory.strategies.protocol import Strategy
from memory.strategies.structured import StructuredStrategy
from memory.strategies.summarize import SummarizeStrategy
from memory.strategies.truncate import TruncateStrategy
from memory.strategies.turns import TurnsStrategy

StrategyName = Literal["checkpoint", "summarize", "truncate", "turns", "structured"]

STRATEGIES: Mapping[str, Strategy] = {
    "checkpoint": CheckpointStrategy(),
    "summarize": SummarizeStrategy(),
    "truncate": TruncateStrategy(),
    "turns": TurnsStrategy(),
    "structured": StructuredStrategy(),
}


def strategy_named(name: str) -> Strategy:
    """Return the strategy of that name; the default if an old row names one that does not exist any more."""
    return STRATEGIES.get(name, STRATEGIES["checkpoint"])
