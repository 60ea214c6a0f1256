"""The values of a plan: its steps, and how far each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

StepState = Literal["pending", "running", "done", "failed", "skipped"]
PLANNER = "planner"
ANALYST = "analyst"
RESERVED = frozenset({PLANNER, ANALYST})
"""Who else makes calls for a plan; no step is called so."""
OVER: frozenset[StepState] = frozenset({"done", "failed", "skipped"})


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One piece of work. `result` is what it found; of a failed or skipped step, why there is nothing."""

    id: str
    title: str
    task: str
    dependencies: tuple[str, ...] = ()
    round: int = 1
    state: StepState = "pending"
    attempts: int = 0
    result: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in OVER


def done_steps(steps: Sequence[PlanStep]) -> tuple[PlanStep, ...]:
    return tuple(step for step in steps if step.state == "done")
