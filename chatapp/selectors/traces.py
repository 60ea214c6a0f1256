"""What a run did, step by step: its model calls with their times and requests, the tools they asked for, its hooks."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from chatapp import row_shapes
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
    steps = RunStep.objects.filter(run=run).order_by("n")
    hashes = dict(SentRequest.objects.filter(run=run).values_list("n", "sha256"))
    hooks = Event.objects.filter(run=run, type="hook").order_by("seq").values_list("payload", flat=True)
    return {
        "iterations": [
            row_shapes.step_shape(step)
            | {"request": _request(step, hashes.get(step.request_n)), "tools": tools[step.n]}
            for step in steps
        ],
        "hooks": [fired | {"tool": of_hooks.get(fired.get("call_id", ""))} for fired in hooks],
    }


def _request(step: RunStep, sha256: str | None) -> dict[str, Any] | None:
    return {"sha256": sha256, "n": step.request_n} if sha256 else None
