"""What a run did, step by step: its model calls with their times and requests, the tools they asked for, its hooks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from agents.plan.scheduler import Steps
from agents.plan.steps import ANALYST, PLANNER
from chatapp import mapping, row_shapes
from chatapp.models import Event, Run, RunStep, SentRequest, ToolCall


def trace_of(run: Run) -> dict[str, Any]:
    """Of a run that is going on, up to now."""
    tools: dict[int, list[dict[str, Any]]] = defaultdict(list)
    of_hooks: dict[str, dict[str, Any]] = {}
    for call in ToolCall.objects.filter(run=run).order_by("ordinal"):
        shape = row_shapes.tool_call_shape(call)
        if call.hook_id:
            of_hooks[call.call_id] = shape
        else:
            tools[call.step].append(shape)
    steps = list(RunStep.objects.filter(run=run).order_by("n"))
    places = _places_in_plan(mapping.plan_from_json(run.plan), [step.plan_step for step in steps])
    hashes = dict(SentRequest.objects.filter(run=run).values_list("n", "sha256"))
    hooks = Event.objects.filter(run=run, type="hook").order_by("seq").values_list("payload", flat=True)
    return {
        "iterations": [
            row_shapes.step_shape(step)
            | place
            | {"request": _request(step, hashes.get(step.request_n)), "tools": tools[step.n]}
            for step, place in zip(steps, places, strict=True)
        ],
        "hooks": [fired | {"tool": of_hooks.get(fired.get("call_id", ""))} for fired in hooks],
    }


def _places_in_plan(plan: Steps, callers: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Of each call, who made it: the title of a step, and the round of a step, a planner or an analyst."""
    by_id = {step.id: step for step in plan}
    # A continued plan begins behind what an earlier run has done.
    last_round = max(
        (step.round for step in plan if step.state == "done" and step.id not in callers), default=0
    )
    for caller in callers:
        step = by_id.get(caller)
        if step is not None:
            last_round = max(last_round, step.round)
        rounds = {PLANNER: last_round + 1, ANALYST: max(1, last_round)}
        yield {
            "title": step.title if step else None,
            "round": step.round if step else rounds.get(caller),
        }


def _request(step: RunStep, sha256: str | None) -> dict[str, Any] | None:
    return {"sha256": sha256, "n": step.request_n} if sha256 else None
