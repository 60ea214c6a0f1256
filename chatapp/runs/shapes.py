"""Converts rows to the form in which the API, the events and the exports show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from agents.plan.steps import PlanStep
from chatapp.conversations.schemas.messages import plan_shape, run_error
from chatapp.operations.clock import iso_time
from chatapp.runs.models import Run, RunStep, ToolCall

HOOK_RESULT_CHARS = 200
"""Characters of the tool's result that the event of a hook shows."""


def hook_call_text(call: ToolCall) -> str:
    """Return the text for the event of a hook that called a tool."""
    return describe_hook_call(call.name, call.state, call.result_text)


def describe_hook_call(tool_name: str, state: str, result: str) -> str:
    # The text of a refusal is written for the model; the reader sees the reason at the call itself.
    said = "it was not approved." if state == ToolCall.State.DENIED else result[:HOOK_RESULT_CHARS]
    return f"{tool_name}: {said}"


def run_shape(run: Run) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "conversation_id": str(run.conversation_id),
        "status": run.status,
        "message_id": str(run.answer_id),
        "error": run_error(run),
        "usage": run.usage or {},
        "mode": run.mode or None,
        "plan": plan_shape(run),
        "started_at": iso_time(run.started_at),
        "finished_at": iso_time(run.finished_at),
    }


def step_shape(step: RunStep) -> dict[str, Any]:
    return {
        "n": step.n,
        "purpose": step.purpose,
        "model": step.model_name,
        "plan_step": step.plan_step or None,
        "started_at": iso_time(step.started_at),
        "first_token_ms": step.first_token_ms,
        "duration_ms": step.duration_ms,
        "usage": {
            "input_tokens": step.input_tokens,
            "output_tokens": step.output_tokens,
            "cached_tokens": step.cached_tokens,
            "exact": step.exact,
        },
    }


def plan_from_json(stored: Iterable[Mapping[str, Any]] | None) -> tuple[PlanStep, ...]:
    return tuple(PlanStep(**{**step, "dependencies": tuple(step["dependencies"])}) for step in stored or ())


def plan_to_json(steps: Iterable[PlanStep]) -> list[dict[str, Any]]:
    return [asdict(step) for step in steps]
