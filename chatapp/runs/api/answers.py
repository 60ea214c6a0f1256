"""How a sender gets the answer: complete, as a stream, or later by requesting the run."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from chatapp.accounts.budgets.values import seconds_to_reset
from chatapp.accounts.callers import ApiRequest
from chatapp.accounts.models import User
from chatapp.operations import clock
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.http.errors import error_response
from chatapp.operations.http.schemas import answers
from chatapp.realtime.api.sse import sse_response
from chatapp.realtime.api.streams import ConversationReader
from chatapp.realtime.hub import Frame, conversation_topic, hub
from chatapp.runs import runner, schemas
from chatapp.runs.actions.answering_again import receipt_of_run
from chatapp.runs.actions.sending import Receipt
from chatapp.runs.models import Run
from chatapp.runs.selectors import RunAnswer, answer_of_run, has_ended

Mode = Literal["wait", "stream", "async"]
LOOK_EVERY_S = 2.0
"""How often the row is read while waiting. The hub reports the end at once, but its hint may be lost."""

SSE_BODY = {"schema": {"description": "Server-sent events from message.created to run.finished."}}
"""Without a type: some client generators take it for the type of the whole stream, others for that of one event."""
ANSWERS: dict[int, Any] = {
    **answers(404, 409, 413, 429, 502, 503, 504, ok=schemas.Answer),
    202: schemas.Accepted,
}
PREFER = {
    "in": "header",
    "name": "Prefer",
    "schema": {"type": "string"},
    "description": "`respond-async`: 202 at once, with the ids of the run and of both messages.",
}
DESCRIBED: dict[str, Any] = {
    "parameters": [PREFER],
    "responses": {200: {"content": {"text/event-stream": SSE_BODY}}},
}
FAILED_STATUS = {"timeout": 504, "stalled": 504}


def _wanted_mode(request: ApiRequest, stream: bool) -> Mode:
    # RFC 7240: a preference may have a value and parameters.
    given = request.headers.get("Prefer", "").split(",")
    preferences = [word.partition(";")[0].strip().lower() for word in given]
    if "respond-async" in preferences:
        return "async"
    return "stream" if stream else "wait"


async def answer_with(request: ApiRequest, receipt: Receipt, stream: bool) -> HttpResponseBase:
    """Start the run if it is new, and return the response in the wanted mode. Open a stream before the run starts, so
    that its reader misses nothing."""
    mode = _wanted_mode(request, stream)
    await sync_to_async(close_old_connections)()  # the rest may take minutes
    if mode == "async":
        _start(receipt)
        return accepted(receipt)
    if mode == "stream":
        reader = ConversationReader(request.auth, receipt.conversation_id)
        start = partial(runner.start, receipt.run_id) if receipt.is_new else None
        chunks = reader.chunks(receipt.seq - 1, once_open=start, until_run_id=receipt.run_id)
        return sse_response(chunks)
    return await RunWaiter(request.auth.user, receipt).wait()


async def answer_again(request: ApiRequest, made: str, values: dict[str, Any]) -> HttpResponseBase:
    """Return the response of a repeated request, which queued this run without a message."""
    receipt = await sync_to_async(receipt_of_run)(request.auth.user, made)
    return await answer_with(request, receipt, values["options"].stream)


def _start(receipt: Receipt) -> None:
    if receipt.is_new:
        runner.start(receipt.run_id)


def accepted_ids(receipt: Receipt) -> dict[str, Any]:
    return {
        "run_id": receipt.run_id,
        "message_id": receipt.message_id,
        "answer_id": receipt.answer_id,
        "seq": receipt.seq,
    }


def accepted(receipt: Receipt) -> HttpResponse:
    response = JsonResponse(accepted_ids(receipt), status=202)
    response["Location"] = f"/api/v1/runs/{receipt.run_id}"
    response["Preference-Applied"] = "respond-async"
    return response


class RunWaiter:
    """Waits for the end of one run. The run does not need it: a client that disconnects finds the answer later."""

    def __init__(self, user: User, receipt: Receipt) -> None:
        self.user = user
        self.receipt = receipt
        self.holder = ""  # it only hears of the run; rights are checked when the answer is read
        self._hint = asyncio.Event()

    def deliver(self, topic: str, frame: Frame) -> None:
        if frame.type == "run.finished" and json.loads(frame.text).get("run_id") == self.receipt.run_id:
            self._hint.set()

    def catch_up(self, conversation_id: str, last_seq: int) -> None:
        self._hint.set()

    def close(self, reason: str) -> None:
        self._hint.set()

    async def wait(self) -> HttpResponse:
        topic = conversation_topic(self.receipt.conversation_id)
        # Subscribe before the run starts, so that its end is not missed.
        await hub.subscribe(self, topic)
        try:
            _start(self.receipt)
            while not await retry_on_outage(has_ended)(self.user, self.receipt.run_id):
                await self._wait_for_hint()
        finally:
            await hub.unsubscribe(self, topic)
        return finished(self.receipt, await retry_on_outage(answer_of_run)(self.user, self.receipt.run_id))

    async def _wait_for_hint(self) -> None:
        try:
            await asyncio.wait_for(self._hint.wait(), LOOK_EVERY_S)
        except TimeoutError:
            return
        self._hint.clear()


def finished(receipt: Receipt, answer: RunAnswer) -> HttpResponse:
    """Return the response for a run that ended: the message of a complete or stopped answer, or an error that names the
    messages the run left behind."""
    body = {"message": answer.message, "usage": answer.usage, "run_id": receipt.run_id}
    if answer.compact is not None:
        body["compact"] = answer.compact
    if answer.status in (Run.Status.COMPLETE, Run.Status.STOPPED):
        return JsonResponse(body)
    error = answer.error or {"category": "internal", "message": "The answer could not be finished."}
    details = {**body, "category": error["category"], "message_id": receipt.message_id}
    if answer.status == Run.Status.INTERRUPTED:
        return error_response(503, "interrupted", error["message"], details)
    if error["category"] == "too_large":  # no model was called
        return error_response(413, "too_large", error["message"], details)
    if error["category"] == "budget":  # none here either
        response = error_response(429, "budget_exhausted", error["message"], details)
        response["Retry-After"] = str(seconds_to_reset(error["detail"], clock.now()))
        return response
    return error_response(FAILED_STATUS.get(error["category"], 502), "model_error", error["message"], details)
