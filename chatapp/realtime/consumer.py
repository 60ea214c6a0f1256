"""The WebSocket: one connection per tab, for any number of conversations."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from typing import Any

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import DatabaseError
from pydantic import ValidationError

from agents.events import MessageSnapshot
from chatapp.accounts.models import User
from chatapp.accounts.rate_limits import check_message_rate
from chatapp.accounts.selectors import SignIn
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.selectors.messages import stored_answer_text
from chatapp.operations import clock
from chatapp.operations.database.access import parse_id
from chatapp.operations.database.outages import describe_outage, is_deleted_concurrently
from chatapp.operations.database.threads import OUTAGE_ERRORS, first_in_writer, in_database
from chatapp.operations.errors import DeletedConcurrently, InvalidInput, RateLimited, ServiceError
from chatapp.operations.telemetry import span
from chatapp.providers.selectors import accessible_model
from chatapp.realtime.frames import (
    ClientFrame,
    ClientFrameAdapter,
    MessageInject,
    MessageSend,
    MessageSync,
    Ping,
    RunStop,
    Subscribe,
    ToolDecision,
    Unsubscribe,
)
from chatapp.realtime.hub import holder_of, hub, user_topic
from chatapp.realtime.rights import rights_watch
from chatapp.realtime.subscriptions import Connection
from chatapp.runs import runner
from chatapp.runs.actions.claims import Claim
from chatapp.runs.actions.endings import request_stop
from chatapp.runs.actions.injected_messages import inject_message
from chatapp.runs.actions.sending import Receipt, send_message
from chatapp.runs.actions.tool_calls import decide_tool_call
from chatapp.runs.api.contents import new_message
from chatapp.runs.selectors import accessible_run
from chatapp.runs.tool_ports import notify_decision
from memory.strict_types import first_problem

log = logging.getLogger(__name__)

MAX_REPLAYED_FACTS = 2_000
MINUTE_S = 60.0
FLOOD = 2
"""A socket that sends this many times its quota is closed."""
CLOSE_CODES = {
    "signed_out": 4401,
    "too_slow": 4408,
    "too_many": 4429,
    "shutting_down": 1012,
    "failed": 1011,
}


class FrameQuota:
    """Counts the frames of one socket, minute by minute."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._began = 0.0
        self._count = 0

    def count(self, now: float) -> None:
        """Count one frame. Raise RateLimited. A quota of 0 means no limit."""
        if now - self._began >= MINUTE_S:
            self._began, self._count = now, 0
        self._count += 1
        if self._most and self._count > self._most:
            wait_s = max(1, math.ceil(self._began + MINUTE_S - now))
            raise RateLimited(f"This socket sends too much. Please wait {wait_s} s.", retry_after_s=wait_s)

    @property
    def is_flooded(self) -> bool:
        """Return whether the sender went far beyond its quota after it was asked to wait."""
        return bool(self._most) and self._count > FLOOD * self._most


class ChatConsumer(AsyncWebsocketConsumer):
    # The hub listens for the whole process. A channel per socket would be one more thing that needs Redis.
    channel_layer_alias = "none"
    user: User
    address: str
    """The client's address, which the server has put in place of a trusted proxy's; empty behind a local socket."""

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle a message without Channels' extra thread hop to close old connections: `in_database` closes them."""
        await getattr(self, get_handler_name(message))(message)

    async def connect(self) -> None:
        user = self.scope.get("user")
        if user is None or not user.is_active:
            await self.close(code=4401)
            return
        self.user = user
        client = self.scope.get("client")
        self.address = client[0] if client else ""
        session, self.token_id = self.scope.get("session"), self.scope.get("token_id")
        self.session_key = session.session_key if session is not None and self.token_id is None else None
        self.connection = Connection(holder_of(self.session_key, self.token_id))
        # Accept before closing: browsers do not get the close code of a refused handshake.
        await self.accept()
        # There is no await before `subscribe` has added this socket, so concurrent sockets count each other.
        if hub.count_readers(user_topic(user.pk)) >= settings.CONNECTIONS_PER_USER:
            # Make `receive` ignore frames that arrive before the close.
            self.connection.close("too_many")
            await self.close(code=CLOSE_CODES["too_many"], reason="too_many")
            return
        self.frame_quota = FrameQuota(settings.FRAMES_PER_MINUTE)
        await hub.subscribe(self.connection, user_topic(user.pk))
        self._writing = asyncio.create_task(self._write_frames())
        rights_watch.add(self.connection, SignIn(user.pk, self.session_key, self.token_id))

    async def disconnect(self, code: int) -> None:
        # The connection was refused, so there is nothing to end.
        if not hasattr(self, "_writing"):
            return
        rights_watch.remove(self.connection)
        self.connection.close("gone")
        self._writing.cancel()
        await hub.unsubscribe(self.connection, user_topic(self.user.pk))
        await self.connection.unwatch_all()

    async def _write_frames(self) -> None:
        # Bypass the middleware, which every delta of an answer would otherwise pass through.
        send = self.scope.get("send_directly", self.base_send)
        try:
            async for frame in self.connection.frames():
                await send({"type": "websocket.send", "text": frame.text})
        except Exception:
            # The log could not be read. A reader that reconnects continues after its last fact.
            log.exception("Closing a socket of user %s after an error.", self.user.pk)
            self.connection.close("failed")
        reason = self.connection.closed_because or ""
        await self.close(code=CLOSE_CODES.get(reason, 1000), reason=reason)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        client_id = None
        if self.connection.closed_because:
            return
        try:
            # Count it before parsing, so that invalid frames count, too.
            self.frame_quota.count(asyncio.get_running_loop().time())
            frame = self._parse(text_data)
            client_id = getattr(frame, "client_id", None)
            with span(f"frame {frame.type}"):
                await self._answer(frame)
        except ServiceError as error:
            await self._tell_error(error, client_id)
            if self.frame_quota.is_flooded:
                self.connection.close("too_many")
        except OUTAGE_ERRORS as error:
            log.exception("The database failed while handling a frame of user %s.", self.user.pk)
            await self._tell_error(describe_outage(error), client_id)
        except DatabaseError as error:
            if not is_deleted_concurrently(error):
                raise
            await self._tell_error(DeletedConcurrently(), client_id)

    def _parse(self, text_data: str | None) -> ClientFrame:
        try:
            return ClientFrameAdapter.validate_json(text_data or "")
        except ValidationError as error:
            where, problem = first_problem(error)
            raise InvalidInput(f"This frame is not valid: {where} {problem}".strip()) from None

    async def _answer(self, frame: ClientFrame) -> None:
        match frame:
            case Ping():
                await self._tell({"type": "pong"})
            case Subscribe():
                await self._subscribe(frame)
            case Unsubscribe():
                await self.connection.unwatch(parse_id(frame.conversation_id))
            case MessageSend():
                await self._send_message(frame)
            case MessageInject():
                await self._inject_message(frame)
            case ToolDecision():
                await self._decide(frame)
            case RunStop():
                await self._stop(frame.run_id)
            case MessageSync():
                await self._send_rest(frame)

    async def _subscribe(self, frame: Subscribe) -> None:
        row = await in_database(accessible_conversation)(self.user, frame.conversation_id)
        # A client this far behind is better served by the newest page of messages than by all events since.
        is_too_old = row.last_seq - frame.after_seq > MAX_REPLAYED_FACTS
        if is_too_old or frame.after_seq > row.last_seq:
            await self._tell({"type": "reset", "conversation_id": str(row.pk)})
            return
        await self.connection.watch(row.pk, frame.after_seq)
        # Send it after subscribing: later text arrives by itself, and this is queued behind the facts it belongs to.
        await runner.send_answer_so_far(row.pk, self.connection)

    async def _send_message(self, frame: MessageSend) -> None:
        await check_message_rate(self.user.pk, self.address)
        receipt = await first_in_writer(_store_message)(self.user, frame, runner.claim_here())
        await self._acknowledge(frame.client_id, receipt)

    async def _inject_message(self, frame: MessageInject) -> None:
        await check_message_rate(self.user.pk, self.address)
        await self._acknowledge(frame.client_id, await in_database(_inject_message)(self.user, frame))

    async def _acknowledge(self, client_id: str, receipt: Receipt) -> None:
        if receipt.is_new and not receipt.is_injected:
            runner.start(receipt.run_id)
        await self._tell(
            {
                "type": "ack",
                "client_id": client_id,
                "message_id": receipt.message_id,
                "run_id": receipt.run_id,
                "seq": receipt.seq,
                "injected": receipt.is_injected,
            }
        )

    async def _decide(self, frame: ToolDecision) -> None:
        call = await in_database(decide_tool_call)(
            user=self.user,
            run_id=frame.run_id,
            call_id=frame.call_id,
            approve=frame.type == "tool.approve",
            now=clock.now(),
        )
        notify_decision(call.run_id, call.call_id)

    async def _stop(self, run_id: str) -> None:
        run = await in_database(accessible_run)(self.user, run_id)
        await in_database(request_stop)(run=run, now=clock.now())
        hub.stop_run(str(run.pk))

    async def _send_rest(self, frame: MessageSync) -> None:
        """Send the rest of an answer: from the run if this process writes it, else as far as it is stored."""
        # Read it in any case: this also checks that the user may read the message.
        stored = await in_database(stored_answer_text)(self.user, frame.message_id)
        text = runner.live_text(frame.message_id)
        if text is None:
            text = stored.text
            if stored.is_growing:
                hub.ask_for_text(frame.message_id)
        snapshot = MessageSnapshot(
            conversation_id=stored.conversation_id,
            at=clock.now(),
            message_id=frame.message_id,
            offset=min(frame.length, len(text)),
            text=text[frame.length :],
        )
        await self._tell(snapshot.model_dump(mode="json", exclude_none=True))

    async def _tell(self, payload: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(payload, ensure_ascii=False, separators=(",", ":")))

    async def _tell_error(self, error: ServiceError, client_id: str | None) -> None:
        payload = {"type": "error", "code": error.code, "message": error.message}
        if client_id is not None:
            payload["client_id"] = client_id
        if isinstance(error, RateLimited):
            payload["retry_after"] = str(error.retry_after_s)
        await self._tell(payload)


def _store_message(user: User, frame: MessageSend, claim: Claim | None) -> Receipt:
    model = accessible_model(user.pk, frame.model) if frame.model else None
    return send_message(
        user=user,
        conversation_id=frame.conversation_id,
        new=new_message(user, frame, parent_id=frame.parent),
        model=model,
        now=clock.now(),
        claim=claim,
    )


def _inject_message(user: User, frame: MessageInject) -> Receipt:
    return inject_message(
        user=user, conversation_id=frame.conversation_id, new=new_message(user, frame), now=clock.now()
    )
