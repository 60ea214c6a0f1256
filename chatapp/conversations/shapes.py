"""Rows as the API, the events and the exports show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from agents.plan.steps import OVER, PREVIEW_CHARS
from chatapp.conversations.models import Conversation, Message
from chatapp.operations.clock import iso_time
from chatapp.runs.models import Run, ToolCall
from memory.bounds import MAX_RETENTION_DAYS


def content_of(parts: Sequence[Mapping[str, Any]]) -> str | list[Mapping[str, Any]]:
    """A string where the message is plain text, else the parts."""
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return list(parts)


def plan_shape(run: Run) -> list[dict[str, Any]] | None:
    """Each step with the beginning of its result. Of a run that has ended, nothing is under way any more."""
    if not run.plan:
        return None
    shape = [
        step | {"task": step["task"][:PREVIEW_CHARS], "result": step["result"][:PREVIEW_CHARS]}
        for step in run.plan
    ]
    if run.status in Run.ACTIVE:
        return shape
    return [step if step["state"] in OVER else step | {"state": "skipped"} for step in shape]


def run_error(run: Run) -> dict[str, str] | None:
    if not run.error_message:
        return None
    return {"category": run.error_category, "message": run.error_message, "detail": run.error_detail}


TOLD_ARGUMENTS_CHARS = 4_000
"""Of a call that waits for a decision, all: nobody approves what they were not shown."""
RESULT_PREVIEW_CHARS = 500


def tool_call_shape(call: ToolCall) -> dict[str, Any]:
    """Arguments and result as far as a reader wants to see them; the messages of the call have all of it."""
    result: Mapping[str, Any] = next(iter(call.result), {})
    told = call.arguments
    if call.state != ToolCall.State.WAITING:
        told = told[:TOLD_ARGUMENTS_CHARS]
    return {
        "call_id": call.call_id,
        "name": call.name,
        "state": call.state,
        "step": call.step,
        "plan_step": call.plan_step or None,
        "hook_id": call.hook_id or None,
        "arguments": told,
        "arguments_cut": len(told) < len(call.arguments),
        "preview": result.get("text", "")[:RESULT_PREVIEW_CHARS],
        "truncated": call.is_cut,
        "offload_ref": result.get("offload_ref"),
        "requested_at": iso_time(call.requested_at),
        "started_at": iso_time(call.started_at),
        "finished_at": iso_time(call.finished_at),
        "duration_ms": _milliseconds(call.started_at, call.finished_at),
    }


def _milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    return round((end - start).total_seconds() * 1000) if start and end else None


def message_shape(row: Message, run: Run | None = None) -> dict[str, Any]:
    """`run` is the run that wrote this message, where there is one."""
    shape: dict[str, Any] = {
        "id": str(row.id),
        "conversation_id": str(row.conversation_id),
        "role": row.role,
        "content": content_of(row.parts),
        "status": row.status,
        "position": row.position,
        "parent": str(row.parent_id) if row.parent_id else None,
        "pinned": row.pinned,
        "forgotten": row.forgotten_at is not None,
        "kind": row.kind,
        "model": row.model_name or None,
        "usage": row.usage,
        "created_at": iso_time(row.created_at),
    }
    if run is not None:
        error = run_error(run)
        if error is not None:
            shape["error"] = {"category": error["category"], "message": error["message"]}
        shape["run"] = {
            "id": str(run.id),
            "status": run.status,
            "error": error,
            "mode": run.mode or None,
            "plan": plan_shape(run),
        }
    return shape


def expires_at(row: Conversation, retention_days: int) -> datetime | None:
    """When the clean-up may take this conversation; None = never."""
    if retention_days <= 0 or row.pinned:
        return None
    return row.last_activity_at + timedelta(days=min(retention_days, MAX_RETENTION_DAYS))


def conversation_shape(row: Conversation, retention_days: int, active_run: Run | None) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "title": row.title,
        "model": row.model.name if row.model else None,
        "agent": row.agent.name if row.agent else None,
        "shared_memory_of": row.scope.name if row.scope else None,
        "mode": row.mode or None,
        "pinned": row.pinned,
        "archived": row.archived,
        "temporary": row.temporary,
        "memory": row.memory,
        "context_policy": row.context_policy,
        "hooks": row.hooks,
        "branch": str(row.branch_id),
        "message_count": row.next_position,
        "last_seq": row.last_seq,
        "last_activity_at": iso_time(row.last_activity_at),
        "created_at": iso_time(row.created_at),
        "expires_at": iso_time(expires_at(row, retention_days)),
        "active_run": {"id": str(active_run.id), "message_id": str(active_run.answer_id)}
        if active_run
        else None,
    }
