"""Runs: how far they are, stopping them, going on where they were cut."""

from __future__ import annotations

import re
from typing import Any

from asgiref.sync import sync_to_async
from django.http.response import HttpResponseBase
from ninja import Router

from chatapp import clock, row_shapes
from chatapp.actions.endings import request_stop
from chatapp.actions.messages import Receipt, continue_run
from chatapp.api import run_shapes, shapes
from chatapp.api.answers import ANSWERS, DESCRIBED, answer_with, wanted_mode
from chatapp.api.auth import ApiRequest, allow, client_address
from chatapp.api.schemas import StreamOption
from chatapp.errors import NotFound
from chatapp.live import hub
from chatapp.models import User
from chatapp.rate_limits import check_message_rate
from chatapp.selectors.access import accessible_run
from chatapp.sent_requests import list_requests, show_request

router = Router(tags=["runs"])


@router.get("/runs/{run_id}", auth=allow("chat", "read"), response=shapes.answers(404, ok=run_shapes.Run))
async def read_run(request: ApiRequest, run_id: str) -> Any:
    return await sync_to_async(_shape)(request.auth.user, run_id)


def _shape(user: User, run_id: str) -> dict[str, Any]:
    return row_shapes.run_shape(accessible_run(user, run_id))


@router.get(
    "/runs/{run_id}/requests",
    auth=allow("chat", "read"),
    response=shapes.answers(404, ok=run_shapes.SentRequests),
)
async def list_sent(request: ApiRequest, run_id: str) -> Any:
    """What the models were sent for this run, in order; refused ones, too."""
    return {"items": await sync_to_async(_list_sent)(request.auth.user, run_id)}


def _list_sent(user: User, run_id: str) -> list[dict[str, Any]]:
    return list_requests(accessible_run(user, run_id))


@router.get(
    "/runs/{run_id}/requests/{n}",
    auth=allow("chat", "read"),
    response=shapes.answers(404, ok=run_shapes.ShownRequest),
)
async def read_sent(request: ApiRequest, run_id: str, n: str) -> Any:
    """One request as it was sent, built again from what is stored; `verified` says whether it is the same bytes."""
    return await sync_to_async(_read_sent)(request.auth.user, run_id, n)


def _read_sent(user: User, run_id: str, n: str) -> dict[str, Any]:
    run = accessible_run(user, run_id)
    if not re.fullmatch("[0-9]{1,6}", n):
        raise NotFound()
    return show_request(run, int(n))


@router.post("/runs/{run_id}/stop", auth=allow("chat"), response=shapes.answers(404, ok=run_shapes.Run))
async def stop(request: ApiRequest, run_id: str) -> Any:
    """Asks the run to end; what was written so far stays. A run that has ended stays as it is."""
    shape = await sync_to_async(_stop)(request.auth.user, run_id)
    hub.stop_run(shape["id"])
    return shape


def _stop(user: User, run_id: str) -> dict[str, Any]:
    run = accessible_run(user, run_id)
    request_stop(run=run, now=clock.now())
    run.refresh_from_db()
    return row_shapes.run_shape(run)


@router.post("/runs/{run_id}/continue", auth=allow("chat"), response=ANSWERS, openapi_extra=DESCRIBED)
async def go_on(request: ApiRequest, run_id: str, options: StreamOption = StreamOption()) -> HttpResponseBase:
    """Goes on where a cut, stopped, failed or interrupted answer ended, in a message of its own."""
    await check_message_rate(request.auth.user.pk, client_address(request))
    receipt = await sync_to_async(_continue)(request.auth.user, run_id)
    return await answer_with(request, receipt, wanted_mode(request, options.stream))


def _continue(user: User, run_id: str) -> Receipt:
    run = accessible_run(user, run_id)
    return continue_run(user=user, run_id=str(run.pk), now=clock.now())
