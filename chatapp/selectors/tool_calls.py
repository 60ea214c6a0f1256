"""What is known of the tool calls of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.ports import CallKey, EarlierCall
from agents.tool_calls import call_key
from chatapp.models import Run, ToolCall


def earlier_calls(run: Run) -> Mapping[CallKey, EarlierCall]:
    """What earlier attempts at the same question may have done already, and must not be done again by a retry."""
    if run.question_id is None:
        return {}
    calls = ToolCall.objects.filter(run__question=run.question_id, is_idempotent=False, has_begun=True)
    unfinished = calls.exclude(run=run).exclude(run__status=Run.Status.COMPLETE)
    ended = unfinished.filter(state__in=[ToolCall.State.DONE, ToolCall.State.INTERRUPTED]).order_by(
        "requested_at"
    )
    return {call_key(call.name, call.arguments): _earlier(call) for call in ended}


def _earlier(call: ToolCall) -> EarlierCall:
    result: dict[str, Any] = next(iter(call.result), {})
    return EarlierCall(result.get("text", "") if call.state == ToolCall.State.DONE else None)
