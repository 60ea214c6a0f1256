"""The tools of a run: what the user says to a call that waits for approval, and what the run did step by step."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router

from chatapp import row_shapes
from chatapp.actions.tool_calls import decide_tool_call
from chatapp.api import run_shapes, shapes
from chatapp.api.auth import ApiRequest, allow
from chatapp.models import ToolCall, User
from chatapp.runs.tool_desk import tell_decision
from chatapp.selectors.access import accessible_run
from chatapp.selectors.traces import trace_of

router = Router(tags=["runs"])


@router.post(
    "/runs/{run_id}/tools/{call_id}/approve",
    auth=allow("chat"),
    response=shapes.answers(404, 409, ok=run_shapes.ToolCall),
)
async def approve(request: ApiRequest, run_id: str, call_id: str) -> Any:
    """Lets a call run that waits for your approval. 409 when it does not wait any more."""
    return await _decide(request.auth.user, run_id, call_id, approve=True)


@router.post(
    "/runs/{run_id}/tools/{call_id}/deny",
    auth=allow("chat"),
    response=shapes.answers(404, 409, ok=run_shapes.ToolCall),
)
async def deny(request: ApiRequest, run_id: str, call_id: str) -> Any:
    """The call is not run; the model is told so. 409 when it does not wait any more."""
    return await _decide(request.auth.user, run_id, call_id, approve=False)


async def _decide(user: User, run_id: str, call_id: str, *, approve: bool) -> dict[str, Any]:
    call: ToolCall = await sync_to_async(decide_tool_call)(
        user=user, run_id=run_id, call_id=call_id, approve=approve
    )
    tell_decision(call.run_id, call.call_id)
    return row_shapes.tool_call_shape(call)


@router.get(
    "/runs/{run_id}/trace", auth=allow("chat", "read"), response=shapes.answers(404, ok=run_shapes.Trace)
)
async def read_trace(request: ApiRequest, run_id: str) -> Any:
    """Each model call of the run with its times and tokens, the tools it asked for, and the hooks that fired."""
    return await sync_to_async(_trace)(request.auth.user, run_id)


def _trace(user: User, run_id: str) -> dict[str, Any]:
    return trace_of(accessible_run(user, run_id))
