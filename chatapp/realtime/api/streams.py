"""Streams one conversation to an SSE reader: the log from a point on, then live events, until rights or runs end."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any
from uuid import UUID

from agents.events import MessageSnapshot
from chatapp.accounts.callers import Caller
from chatapp.accounts.selectors import is_still_signed_in
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.selectors.messages import stored_answer_text
from chatapp.operations import clock
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import NotFound, RateLimited
from chatapp.realtime.api.sse import HEARTBEAT, OPENED, encode_fact_or_delta, encode_notice, with_heartbeat
from chatapp.realtime.hub import Frame, holder_of, hub, user_topic
from chatapp.realtime.subscriptions import Connection
from chatapp.runs import runner

TEXT_TYPES = frozenset({"text.delta", "message.snapshot"})
# Request the text so far only once, not again for each delta that arrives before it.
ASK_AGAIN_S = 1.0
TOO_MANY = "You have too many open connections. Close some first."
RETRY_AFTER_S = 5


class ConversationReader:
    def __init__(self, caller: Caller, conversation_id: str) -> None:
        self.caller = caller
        self.conversation_id = conversation_id
        self.connection = Connection(holder_of(caller.session_key, caller.token_id))
        self._answer_id = ""
        self._chars = 0
        self._asked_at = 0.0

    async def chunks(
        self,
        after_seq: int,
        *,
        once_open: Callable[[], None] | None = None,
        until_run_id: str | None = None,
        most: int | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the facts after `after_seq` and all later events, until the run ends, or forever.

        `once_open` is called once nothing can be missed. Raise RateLimited if the user already has `most` connections.
        """
        topic = user_topic(self.caller.user.pk)
        try:
            await self.connection.watch(UUID(self.conversation_id), after_seq)
            # There is no await before `subscribe` has added this reader, so concurrent streams count each other.
            if most is not None and hub.count_readers(topic) >= most:
                raise RateLimited(TOO_MANY, retry_after_s=RETRY_AFTER_S)
            await hub.subscribe(self.connection, topic)  # to be closed when rights end
            if once_open is not None:
                once_open()
            else:
                await runner.send_answer_so_far(UUID(self.conversation_id), self.connection)
            yield OPENED
            async with aclosing(with_heartbeat(self.connection.frames(), self._may_read)) as frames:
                async for frame in frames:
                    for chunk in await self._encode(frame):
                        yield chunk
                    if frame is not None and until_run_id is not None and ends_run(frame, until_run_id):
                        return
            yield encode_notice(_ended(self.connection.closed_because or "signed_out"))
        finally:
            await self._close()

    async def _close(self) -> None:
        self.connection.close("gone")
        await hub.unsubscribe(self.connection, user_topic(self.caller.user.pk))
        await self.connection.unwatch_all()

    async def _encode(self, frame: Frame | None) -> list[bytes]:
        """Encode a frame. If the reader lacks text before a delta, send the text so far first."""
        if frame is None:
            return [HEARTBEAT]
        # The user's topic delivers facts of all conversations.
        if frame.conversation_id != self.conversation_id:
            return []
        if frame.type not in TEXT_TYPES:
            return [encode_fact_or_delta(frame)]
        delta = json.loads(frame.text)
        before = [encode_notice(await self._snapshot(delta["message_id"]))] if self._lacks_text(delta) else []
        self._note_text(delta)
        return [*before, encode_fact_or_delta(frame)]

    def _lacks_text(self, delta: dict[str, Any]) -> bool:
        if delta["message_id"] != self._answer_id:
            self._answer_id, self._chars, self._asked_at = delta["message_id"], 0, 0.0
        now = time.monotonic()
        if delta["offset"] <= self._chars or now - self._asked_at < ASK_AGAIN_S:
            return False
        self._asked_at = now
        return True

    def _note_text(self, delta: dict[str, Any]) -> None:
        if delta["offset"] <= self._chars:
            # Count only text that follows without a gap; a gap is filled by a snapshot.
            self._chars = max(self._chars, delta["offset"] + len(delta["text"]))

    async def _snapshot(self, message_id: str) -> dict[str, Any]:
        text = runner.live_text(message_id)
        if text is None:
            text = (await retry_on_outage(stored_answer_text)(self.caller.user, message_id)).text
            # Stored text lags behind generated text, so have the writing process send all of it.
            hub.ask_for_text(message_id)
        self._chars = max(self._chars, len(text))
        snapshot = MessageSnapshot(
            conversation_id=self.conversation_id, at=clock.now(), message_id=message_id, offset=0, text=text
        )
        return snapshot.model_dump(mode="json", exclude_none=True)

    async def _may_read(self) -> bool:
        return await retry_on_outage(may_still_read)(self.caller, self.conversation_id)


def may_still_read(caller: Caller, conversation_id: str) -> bool:
    """Return whether the caller still may read, even if no message about that reached this process."""
    try:
        accessible_conversation(caller.user, conversation_id)
    except NotFound:
        return False
    return is_still_signed_in(caller.user.pk, caller.session_key, caller.token_id)


def ends_run(frame: Frame, run_id: str) -> bool:
    return frame.type == "run.finished" and json.loads(frame.text).get("run_id") == run_id


def _ended(reason: str) -> dict[str, Any]:
    sentences = {
        "too_slow": "This reader is too slow; continue after the last id.",
        "signed_out": "You may no longer read this.",
        "shutting_down": "The service is being restarted; continue after the last id.",
    }
    return {"type": "error", "code": reason, "message": sentences.get(reason, "The stream has ended.")}
