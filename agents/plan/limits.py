"""The bounds of a plan. Those that do not say "ours" are FIM One's."""

from __future__ import annotations

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
