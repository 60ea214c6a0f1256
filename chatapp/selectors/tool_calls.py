"""What is known of the tool calls of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from agents.ports import CallKey, EarlierCall
from agents.tool_calls import call_key
from chatapp.models import Run, ToolCall


def earlier_calls(run: Run) -> Mapping[CallKey, EarlierCall]:
    """What earlier attempts at the same question may have done already, and must not be done again by a retry."""
    if run.question_id is None:
        return {}
    calls = ToolCall.objects.filter(run__question=run.question_id)
    return _not_to_repeat(calls.exclude(run=run).exclude(run__status=Run.Status.COMPLETE))


def calls_of_step(run_id: UUID, plan_step: str) -> Mapping[CallKey, EarlierCall]:
    """The same of a plan's step that failed and is tried once more."""
    return _not_to_repeat(ToolCall.objects.filter(run=run_id, plan_step=plan_step))


def count_step_calls(run_id: UUID) -> int:
    """Those of a plan's steps, which are no messages of the conversation."""
    return ToolCall.objects.filter(run=run_id).exclude(plan_step="").count()


def _not_to_repeat(calls: QuerySet[ToolCall]) -> Mapping[CallKey, EarlierCall]:
    begun = calls.filter(is_idempotent=False, has_begun=True)
    ended = begun.filter(state__in=[ToolCall.State.DONE, ToolCall.State.INTERRUPTED]).order_by(
        "requested_at", "ordinal", "pk"
    )
    return {call_key(call.name, call.arguments): _earlier(call) for call in ended}


def _earlier(call: ToolCall) -> EarlierCall:
    result: dict[str, Any] = next(iter(call.result), {})
    return EarlierCall(result.get("text", "") if call.state == ToolCall.State.DONE else None)
