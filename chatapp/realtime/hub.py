"""Delivers events to the readers (WebSockets, SSE) of this process, from its own runs and from other processes.

A reader that misses something finds it in the log or in the message row.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from django.db import transaction

from agents.events import ConversationDeleted
from chatapp.operations import clock
from chatapp.operations.database.threads import in_database
from chatapp.realtime.event_log import facts_committed, last_seqs
from chatapp.realtime.processes import EVERYBODY, OtherProcesses

log = logging.getLogger(__name__)

# A fact whose message was lost arrives late by this much at most.
CATCH_UP_S = 5.0
SIDEBAR_TYPES = frozenset({"conversation.updated", "conversation.attention", "run.started", "run.finished"})
"""Facts for the sidebar of every tab of the user, whatever conversation is open. They are sent without `seq`, which
counts only watched conversations: a tab may get an event before it watches the conversation."""


class Frame(NamedTuple):
    """One event, encoded once for all readers. Frames without `seq` are not counted by readers."""

    conversation_id: str
    type: str
    seq: int | None
    text: str


class Reader(Protocol):
    """One connection. It accepts frames without blocking, and closes itself if it cannot keep up."""

    holder: str
    """The session or token it was opened with, as named by `holder_of`."""

    def deliver(self, topic: str, frame: Frame) -> None: ...

    def catch_up(self, conversation_id: str, last_seq: int) -> None:
        """Read missing facts up to `last_seq` from the log."""

    def close(self, reason: str) -> None: ...


def conversation_topic(conversation_id: Any) -> str:
    return f"conversation.{conversation_id}"


def user_topic(user_id: Any) -> str:
    return f"user.{user_id}"


def encode_frame(payload: dict[str, Any]) -> Frame:
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return Frame(payload["conversation_id"], payload["type"], payload.get("seq"), text)


class Hub:
    """The readers of one web process, by topic. Lives on its event loop; `publish` may be called from any thread."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.on_stop: Callable[[str], None] = lambda run_id: None
        self.on_sync: Callable[[str], None] = lambda message_id: None
        self._others = OtherProcesses(self._receive)
        self._readers: dict[str, set[Reader]] = defaultdict(set)
        self._catching_up: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._catching_up = self.loop.create_task(self._catch_up_forever())
        await self._others.start()

    async def stop(self) -> None:
        for reader in {reader for readers in self._readers.values() for reader in readers}:
            reader.close("shutting_down")
        if self._catching_up is not None:
            self._catching_up.cancel()
        await self._others.stop()
        self._catching_up, self.loop = None, None

    # --- readers -----------------------------------------------------------------------------------

    async def subscribe(self, reader: Reader, topic: str) -> None:
        first = not self._readers[topic]
        # Add it before waiting for Redis, so that it gets events published here meanwhile.
        self._readers[topic].add(reader)
        if first:
            await self._others.join(topic)

    async def unsubscribe(self, reader: Reader, topic: str) -> None:
        readers = self._readers.get(topic, set())
        readers.discard(reader)
        if not readers and self._readers.pop(topic, None) is not None:
            await self._others.leave(topic)

    def count_readers(self, topic: str) -> int:
        """Return how many readers of the topic this process has."""
        return len(self._readers.get(topic, ()))

    @property
    def reader_count(self) -> int:
        # Copy it: metrics read it from another thread while readers come and go.
        return sum(len(readers) for readers in tuple(self._readers.values()))

    # --- publishing --------------------------------------------------------------------------------

    def publish(self, topic: str, frames: Sequence[Frame]) -> None:
        """Deliver to every reader of the topic in any process."""
        self._on_loop(self._deliver, topic, frames)
        self._others.send(topic, {"type": "frames", "topic": topic, "frames": frames})

    def publish_delta(self, topic: str, frame: Frame) -> None:
        """Deliver one delta. Call it on the hub's loop."""
        self._deliver(topic, (frame,))
        self.publish_elsewhere(topic, frame)

    def publish_elsewhere(self, topic: str, frame: Frame) -> None:
        """Deliver only to the readers of other processes. Call it on the hub's loop."""
        self._others.send_from_loop(topic, {"type": "frames", "topic": topic, "frames": (frame,)})

    def close_readers(self, topic: str, reason: str, holder: str = "") -> None:
        """Close the readers of the topic in every process; with `holder`, only that holder's."""
        self._on_loop(self._close_here, topic, reason, holder)
        self._others.send(topic, {"type": "close", "topic": topic, "reason": reason, "holder": holder})

    def stop_run(self, run_id: str) -> None:
        """Ask the process that answers to stop the run now. It also checks the row once a second."""
        self._on_loop(self.on_stop, run_id)
        self._others.send(EVERYBODY, {"type": "stop", "run_id": run_id})

    def ask_for_text(self, message_id: str) -> None:
        """Ask the process that writes this answer to send all its text so far to readers elsewhere."""
        self._others.send(EVERYBODY, {"type": "sync", "message_id": message_id})

    def _on_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        if self.loop is not None:
            self.loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self, topic: str, frames: Sequence[Frame]) -> None:
        for reader in tuple(self._readers.get(topic, ())):
            for frame in frames:
                reader.deliver(topic, frame)

    def _close_here(self, topic: str, reason: str, holder: str) -> None:
        for reader in tuple(self._readers.get(topic, ())):
            if not holder or reader.holder == holder:
                reader.close(reason)

    def _receive(self, message: dict[str, Any]) -> None:
        """Handle a message of another process."""
        if message["type"] == "frames":
            self._deliver(message["topic"], [Frame(*frame) for frame in message["frames"]])
        elif message["type"] == "close":
            self._close_here(message["topic"], message["reason"], message.get("holder", ""))
        elif message["type"] == "stop":
            self.on_stop(message["run_id"])
        elif message["type"] == "sync":
            self.on_sync(message["message_id"])

    # --- catching up -------------------------------------------------------------------------------

    async def _catch_up_forever(self) -> None:
        while True:
            await asyncio.sleep(CATCH_UP_S)
            try:
                await self._catch_up_readers()
            except Exception:
                log.warning("Looking for missed events failed; trying again.", exc_info=True)

    async def _catch_up_readers(self) -> None:
        """Report the last number of each watched log to its readers, in case a message was lost."""
        prefix = conversation_topic("")
        watched = [topic.removeprefix(prefix) for topic in self._readers if topic.startswith(prefix)]
        if not watched:
            return
        for conversation_id, last_seq in (await in_database(last_seqs)(watched)).items():
            for reader in tuple(self._readers.get(conversation_topic(conversation_id), ())):
                reader.catch_up(str(conversation_id), last_seq)


hub = Hub()


def publish_facts(
    sender: Any, *, conversation_id: Any, user_id: Any, payloads: list[dict[str, Any]], **_: Any
) -> None:
    hub.publish(conversation_topic(conversation_id), [encode_frame(payload) for payload in payloads])
    for_user = [encode_frame(_uncounted(payload)) for payload in payloads if payload["type"] in SIDEBAR_TYPES]
    if for_user:
        hub.publish(user_topic(user_id), for_user)


def publish_deletion(conversation_id: Any, user_id: Any) -> None:
    """Notify every tab of the user that the conversation is gone or in the trash."""
    event = ConversationDeleted(conversation_id=str(conversation_id), at=clock.now())
    frame = encode_frame(event.model_dump(mode="json", exclude_none=True))
    for topic in (conversation_topic(conversation_id), user_topic(user_id)):
        hub.publish(topic, [frame])


def stop_runs_after_commit(run_ids: Iterable[UUID]) -> None:
    """Ask the processes that answer these runs to stop, once the transaction that ended the runs commits."""
    for run_id in run_ids:
        transaction.on_commit(partial(hub.stop_run, str(run_id)))


def _uncounted(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name != "seq"}


facts_committed.connect(publish_facts, dispatch_uid="live.publish_facts")


def holder_of(session_key: str | None, token_id: Any = None) -> str:
    """Return the name of the session or token that opened a connection. A session key is a secret, so it is hashed."""
    if token_id is not None:
        return f"token:{token_id}"
    return f"session:{sha256(session_key.encode()).hexdigest()}" if session_key else ""


def close_user(user_id: Any, holder: str = "") -> None:
    """Close the user's connections everywhere; with a holder, only those opened by one session or token."""
    hub.close_readers(user_topic(user_id), "signed_out", holder)
