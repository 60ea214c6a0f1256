"""What is stored, as the values of `memory` and `agents`, and back: parts, messages, checkpoints, plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from agents.plan.steps import PlanStep


def plan_from_json(stored: Iterable[Mapping[str, Any]] | None) -> tuple[PlanStep, ...]:
    return tuple(PlanStep(**{**step, "dependencies": tuple(step["dependencies"])}) for step in stored or ())


def plan_to_json(steps: Iterable[PlanStep]) -> list[dict[str, Any]]:
    return [asdict(step) for step in steps]
