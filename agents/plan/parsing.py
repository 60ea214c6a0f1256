"""Parse the planner's plan and the analyst's judgement from the answers of a model."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import count
from typing import Any

from agents.plan.steps import MAX_STEPS, RESERVED, SURE, PlanStep
from agents.text import storable_text

TITLE_CHARS = 80
ID_CHARS = 40


class PlanError(ValueError):
    """The answer is not a valid plan; the message says why, so that the planner can correct it."""


def read_plan(text: str, *, number: int = 1, earlier: Sequence[PlanStep] = ()) -> tuple[PlanStep, ...]:
    """Return the steps of round `number` in order; empty if the planner sees no need for any.

    They may depend on steps of previous rounds (`earlier`) that are done. Raise PlanError for an invalid plan.
    """
    items = _find_items(text)
    if len(items) > MAX_STEPS:
        raise PlanError(f"there are {len(items)} steps; at most {MAX_STEPS} are possible")
    steps = [_read_step(item, at, number) for at, item in enumerate(items, start=1)]
    _check_ids(steps)
    _check_dependencies(steps, {step.id for step in earlier if step.state == "done"})
    return _with_free_ids(steps, RESERVED | {step.id for step in earlier}, number)


def _find_items(text: str) -> list[Any]:
    for value in find_values(text):
        items = _items_of(value)
        if items is not None:
            return items
    raise PlanError('there is no JSON object with a list "steps"')


def _items_of(value: Any) -> list[Any] | None:
    if isinstance(value, list):
        is_plan = bool(value) and all(isinstance(item, Mapping) for item in value)
        return value if is_plan else None
    for name in ("steps", "plan", "tasks"):
        inner = value.get(name)
        if isinstance(inner, Mapping):
            return _items_of(inner)
        if isinstance(inner, list):
            return inner
    return None


def _read_step(item: Any, at: int, number: int) -> PlanStep:
    if not isinstance(item, Mapping):
        raise PlanError(f"step {at} is not an object")
    title = _text(item, "title", "name")
    task = _text(item, "task", "description", "instruction") or title
    if not task:
        raise PlanError(f'step {at} has no "task"')
    return PlanStep(
        id=_text(item, "id", "step_id")[:ID_CHARS] or f"s{at}",
        title=_shorten(title or task),
        task=task,
        dependencies=_read_dependencies(item, at),
        round=number,
    )


def _text(item: Mapping[str, Any], *names: str) -> str:
    """Return the first of these fields that is not empty, as text, because some models number their steps."""
    values = (item.get(name) for name in names)
    texts = (storable_text(str(value)).strip() for value in values if isinstance(value, str | int))
    return next((text for text in texts if text), "")


def _read_dependencies(item: Mapping[str, Any], at: int) -> tuple[str, ...]:
    named: Any = next((item[name] for name in ("dependencies", "depends_on", "deps") if item.get(name)), [])
    if isinstance(named, str | int):
        named = [named]
    if not isinstance(named, list) or not all(isinstance(one, str | int) for one in named):
        raise PlanError(f'"dependencies" of step {at} is not a list of ids')
    return tuple(dict.fromkeys(storable_text(str(one)).strip()[:ID_CHARS] for one in named))


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def _check_ids(steps: Sequence[PlanStep]) -> None:
    seen: set[str] = set()
    for step in steps:
        if step.id in seen:
            raise PlanError(f'two steps have the id "{step.id}"')
        seen.add(step.id)


def _check_dependencies(steps: Sequence[PlanStep], earlier: set[str]) -> None:
    ids = {step.id for step in steps}
    for step in steps:
        for dependency in step.dependencies:
            if dependency not in ids | earlier:
                raise PlanError(f'step "{step.id}" depends on "{dependency}", which does not exist')
    try:
        TopologicalSorter({step.id: step.dependencies for step in steps}).prepare()
    except CycleError as error:
        circle = " → ".join(error.args[1])
        raise PlanError(f"the steps have a circular dependency: {circle}") from None


def _with_free_ids(steps: Sequence[PlanStep], taken: frozenset[str], number: int) -> tuple[PlanStep, ...]:
    """Return the steps, with ids that are taken renamed, in dependencies, too."""
    used = {*taken, *(step.id for step in steps)}
    names: dict[str, str] = {}
    for step in steps:
        free = (f"{step.id}-r{more}" for more in count(number))
        names[step.id] = next(name for name in free if name not in used) if step.id in taken else step.id
        used.add(names[step.id])
    return tuple(
        replace(step, id=names[step.id], dependencies=tuple(names.get(one, one) for one in step.dependencies))
        for step in steps
    )


# --- the analyst's judgement


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analyst's judgement; `missing` describes what is not known yet."""

    goal_met: bool
    confidence: float
    missing: str = ""

    @property
    def wants_replanning(self) -> bool:
        """Return whether another round may help: the goal is not met, and the analyst is not sure that it would not."""
        return not self.goal_met and self.confidence < SURE


def read_analysis(text: str) -> Analysis | None:
    """Return the judgement; None if the answer contains none."""
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
    """Return a number from 0 to 1. Percentages are divided by 100; an invalid number is 0."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        return 0.0
    if math.isnan(number):
        return 0.0
    return min(max(number / 100 if number > 1 or text.endswith("%") else number, 0.0), 1.0)


# --- JSON in a model's answer


MAX_TRIES = 50
"""Positions at which parsing is tried: each costs a scan, and a text may be full of braces."""

_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_DECODER = json.JSONDecoder()
_OPENING = re.compile(r"[{\[]")


def find_values(text: str) -> Iterator[Any]:
    """Yield every outermost object and array, whether bare, fenced or inside prose."""
    text = _THOUGHTS.sub("", text)
    at, tries = 0, 0
    while (opening := _OPENING.search(text, at)) and tries < MAX_TRIES:
        tries += 1
        try:
            value, at = _DECODER.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            at = opening.end()
            continue
        yield value
