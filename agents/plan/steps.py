"""Define the steps of a plan and its limits. Limits that are not marked as ours are FIM One's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PLANNER_INPUT_TOKENS = 16_000
"""A longer history is summarised for the planner, which reads everything in one call."""
DEPENDENCY_CHARS = 50_000
"""Limit for each result that a step depends on."""
ANALYSIS_CHARS = 10_000
"""Limit for each result in the analysis, so that no step crowds out the others."""
REPLAN_CHARS = 500
"""Limit for each result when a new plan is requested: enough to see what happened."""
MAX_ROUNDS = 3
"""Maximum number of plans for one question, including the first."""
SURE = 0.8
"""From this confidence on, the analyst's judgement that further steps would not help is trusted."""
STEP_ATTEMPTS = 2
"""A failed step is retried once. Ours."""
MAX_STEPS = 12
"""Limit for one round. Ours."""
PARALLEL_STEPS = 8
"""Steps of one plan that call models at the same time. Ours, because providers limit requests, too."""
PREVIEW_CHARS = 500
"""Limit for each result in events and on the page. Ours."""

StepState = Literal["pending", "running", "done", "failed", "skipped"]
PLANNER = "planner"
ANALYST = "analyst"
RESERVED = frozenset({PLANNER, ANALYST})
"""Names of a plan's other callers of models, which no step may have as its id."""
OVER: frozenset[StepState] = frozenset({"done", "failed", "skipped"})


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One piece of work. `result` is its result, or why a failed or skipped step has none."""

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
