"""Define the steps of a plan and its bounds. Bounds that are not marked as ours are FIM One's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PLANNER_INPUT_TOKENS = 16_000
"""A longer history is summarised for the planner, which reads everything in one call."""
DEPENDENCY_CHARS = 50_000
"""Of each result a step builds on."""
ANALYSIS_CHARS = 10_000
"""Of each result in the analysis: no step may crowd out the others."""
REPLAN_CHARS = 500
"""Of each result when a new plan is asked for: what happened, not all it found."""
MAX_ROUNDS = 3
"""Plans made for one question, the first one included."""
SURE = 0.8
"""From this confidence on, the analyst is believed that further steps would not help."""
STEP_ATTEMPTS = 2
"""A failed step is tried once more. Ours."""
MAX_STEPS = 12
"""Of one round. Ours: more is a program, not a plan."""
PARALLEL_STEPS = 8
"""Steps of one plan that ask models at the same time. Ours: providers limit requests, too."""
PREVIEW_CHARS = 500
"""Of each result in events and on the page; ours."""

StepState = Literal["pending", "running", "done", "failed", "skipped"]
PLANNER = "planner"
ANALYST = "analyst"
RESERVED = frozenset({PLANNER, ANALYST})
"""Names of the other callers of a plan: no step may have one as its id."""
OVER: frozenset[StepState] = frozenset({"done", "failed", "skipped"})


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One piece of work. `result` is what it found, or why a failed or skipped step found nothing."""

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
