"""What the analyst found: whether the results of the steps are enough to answer from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.plan.json_answers import find_values
from agents.plan.limits import SURE
from agents.text import storable_text


@dataclass(frozen=True, slots=True)
class Analysis:
    """`missing` says in words what is not there yet."""

    goal_met: bool
    confidence: float
    missing: str = ""

    @property
    def wants_replanning(self) -> bool:
        """Not where the analyst is sure that nothing more can be had."""
        return not self.goal_met and self.confidence < SURE


def read_analysis(text: str) -> Analysis | None:
    """None where the answer holds no judgement."""
    for value in find_values(text):
        if isinstance(value, Mapping) and (judged := _judgement(value)) is not None:
            return Analysis(
                judged,
                _confidence(value.get("confidence")),
                storable_text(str(value.get("missing") or "")).strip(),
            )
    return None


def _judgement(value: Mapping[str, Any]) -> bool | None:
    judged = next((value[name] for name in ("goal_met", "achieved", "goal_achieved") if name in value), None)
    if isinstance(judged, str):
        return {"true": True, "yes": True, "false": False, "no": False}.get(judged.strip().lower())
    return judged if isinstance(judged, bool) else None


def _confidence(value: Any) -> float:
    """From 0 to 1; a percentage is read as such, and what is no number as no confidence at all."""
    try:
        number = float(str(value).strip().rstrip("%"))
    except ValueError:
        return 0.0
    return min(max(number / 100 if number > 1 else number, 0.0), 1.0)
