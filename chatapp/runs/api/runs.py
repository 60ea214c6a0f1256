"""Runs: reading their progress, stopping them and continuing cut answers."""

from __future__ import annotations

import re
from typing import Any

from asgiref.sync import sync_to_async
from django.http.response import HttpResponseBase

from chatapp.accounts.callers import ApiRequest, allow, client_address
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.context.selectors import list_requests, show_request
from chatapp.conversations.schemas.messages import StreamOption, tool_call_shape
from chatapp.operations import clock
from chatapp.operations.errors import NotFound
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import answers
from chatapp.realtime.hub import hub
from chatapp.runs import schemas, shapes
from chatapp.runs.actions.answering_again import continue_run
from chatapp.runs.actions.endings import request_stop
from chatapp.runs.actions.tool_calls import decide_tool_call
from chatapp.runs.api.answers import ANSWERS, DESCRIBED, answer_again, answer_with
from chatapp.runs.models import ToolCall
from chatapp.runs.selectors import accessible_run, trace_of
from chatapp.runs.tool_ports import notify_decision

router = Router(tags=["runs"])


@router.get("/runs/{run_id}", auth=allow("chat", "read"), response=answers(404, ok=schemas.Run))
def read_run(request: ApiRequest, run_id: str) -> Any:
    return shapes.run_shape(accessible_run(request.auth.user, run_id))


@router.get(
    "/runs/{run_id}/requests",
    auth=allow("chat", "read"),
    response=answers(404, ok=schemas.SentRequests),
)
def list_sent(request: ApiRequest, run_id: str) -> Any:
    """List the requests that were sent to models for this run, in order, including refused ones."""
    return {"items": list_requests(accessible_run(request.auth.user, run_id))}


@router.get(
    "/runs/{run_id}/requests/{n}",
    auth=allow("chat", "read"),
    response=answers(404, ok=schemas.ShownRequest),
)
def read_sent(request: ApiRequest, run_id: str, n: str) -> Any:
    """Show one request as it was sent, rebuilt from what is stored. `verified` says whether the bytes are the same."""
    run = accessible_run(request.auth.user, run_id)
    if not re.fullmatch("[0-9]{1,6}", n):
        raise NotFound()
    return show_request(run, int(n))


@router.post("/runs/{run_id}/stop", auth=allow("chat"), response=answers(404, ok=schemas.Run))
async def stop(request: ApiRequest, run_id: str) -> Any:
    """Ask the run to end; the text written so far is kept. A run that has ended does not change."""
    shape = await sync_to_async(_stop)(request.auth.user, run_id)
    # Use the row's id: the URL may spell it differently, and runs are looked up by its text.
    hub.stop_run(shape["id"])
    return shape


def _stop(user: User, run_id: str) -> dict[str, Any]:
    run = accessible_run(user, run_id)
    request_stop(run=run, now=clock.now())
    run.refresh_from_db()
    return shapes.run_shape(run)


@router.post("/runs/{run_id}/continue", auth=allow("chat"), response=ANSWERS, openapi_extra=DESCRIBED)
@creates(answer_again)
async def go_on(request: ApiRequest, run_id: str, options: StreamOption = StreamOption()) -> HttpResponseBase:
    """Continue a cut, stopped, failed or interrupted answer where it ended, in a new message."""
    await check_message_rate(request.auth.user.pk, client_address(request))
    receipt = await sync_to_async(continue_run)(user=request.auth.user, run_id=run_id, now=clock.now())
    return await answer_with(request, receipt, options.stream)


@router.post(
    "/runs/{run_id}/tools/{call_id}/approve",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.ToolCall),
)
async def approve(request: ApiRequest, run_id: str, call_id: str) -> Any:
    """Approve a tool call that waits for your decision, so that it runs. 409 if it is not waiting."""
    return await _decide(request.auth.user, run_id, call_id, approve=True)


@router.post(
    "/runs/{run_id}/tools/{call_id}/deny",
    auth=allow("chat"),
    response=answers(404, 409, ok=schemas.ToolCall),
)
async def deny(request: ApiRequest, run_id: str, call_id: str) -> Any:
    """Deny a tool call that waits for your decision: it is not run, and the model is informed. 409 if it is not
    waiting."""
    return await _decide(request.auth.user, run_id, call_id, approve=False)


async def _decide(user: User, run_id: str, call_id: str, *, approve: bool) -> dict[str, Any]:
    call: ToolCall = await sync_to_async(decide_tool_call)(
        user=user, run_id=run_id, call_id=call_id, approve=approve, now=clock.now()
    )
    notify_decision(call.run_id, call.call_id)
    return tool_call_shape(call)


@router.get("/runs/{run_id}/trace", auth=allow("chat", "read"), response=answers(404, ok=schemas.Trace))
def read_trace(request: ApiRequest, run_id: str) -> Any:
    """Show each model call of the run with its times, tokens and tool calls, and the hooks that fired."""
    return trace_of(accessible_run(request.auth.user, run_id))
