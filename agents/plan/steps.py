"""The values of a plan: its steps, and how far each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PLANNER_INPUT_TOKENS = 16_000
"""A longer history is summarised for the planner, which reads everything in one pass."""
DEPENDENCY_CHARS = 50_000
"""Of each result a step builds on."""
ANALYSIS_CHARS = 10_000
"""Of each result in the analysis: no step may crowd out the others."""
REPLAN_CHARS = 500
"""Of each result when a new plan is asked for: what happened, not all it found."""
MAX_ROUNDS = 3
"""Plans made for one question, the first one included."""
SURE = 0.8
"""From this confidence on, an unmet goal is believed to stay unmet; below it another round may help."""
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
