"""Live delivery to the readers (sockets, SSE) of this process, from runs here and from other processes.

A hint, never the record: a reader that misses something finds it in the log or in the message row.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer

from chatapp.database import in_database
from chatapp.event_log import facts_committed
from chatapp.selectors.live import last_seqs

log = logging.getLogger(__name__)

ALL_WEB_PROCESSES = "web"
HEAL_S = 5.0
TOLD_TO_USER = frozenset({"conversation.updated", "run.started", "run.finished"})
"""Facts that the sidebar of every tab of the user wants, whatever conversation is open in it."""


class Frame(NamedTuple):
    """One event, encoded once however many readers there are. `seq` is None for deltas."""

    conversation_id: str
    type: str
    seq: int | None
    text: str


class Reader(Protocol):
    """One connection. It takes frames without waiting; one that cannot keep up closes itself."""

    def deliver(self, topic: str, frame: Frame) -> None: ...

    def catch_up(self, conversation_id: str, last_seq: int) -> None:
        """The log has facts up to `last_seq`; read what is missing."""

    def close(self, reason: str) -> None: ...


def conversation_topic(conversation_id: Any) -> str:
    return f"conversation.{conversation_id}"


def user_topic(user_id: Any) -> str:
    return f"user.{user_id}"


def encode_frame(payload: dict[str, Any]) -> Frame:
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return Frame(payload["conversation_id"], payload["type"], payload.get("seq"), text)


class Hub:
    """The readers of one web process, by topic. Lives on its event loop; `tell` may come from any thread."""

    def __init__(self) -> None:
        self.origin = uuid.uuid4().hex
        self.loop: asyncio.AbstractEventLoop | None = None
        self.on_stop: Callable[[str], None] = lambda run_id: None
        self._readers: dict[str, set[Reader]] = defaultdict(set)
        self._tasks: list[asyncio.Task[None]] = []
        self._channel = ""

    @property
    def _has_other_processes(self) -> bool:
        return not isinstance(get_channel_layer(), InMemoryChannelLayer)

    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._tasks = [self.loop.create_task(self._heal_forever())]
        if self._has_other_processes:
            self._tasks.append(self.loop.create_task(self._receive_forever()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks, self.loop = [], None

    # --- readers -----------------------------------------------------------------------------------

    async def subscribe(self, reader: Reader, topic: str) -> None:
        first = not self._readers[topic]
        self._readers[topic].add(reader)
        if first and self._channel:
            await self._try_layer("group_add", topic, self._channel)

    async def unsubscribe(self, reader: Reader, topic: str) -> None:
        readers = self._readers.get(topic, set())
        readers.discard(reader)
        if not readers and self._readers.pop(topic, None) is not None and self._channel:
            await self._try_layer("group_discard", topic, self._channel)

    @property
    def reader_count(self) -> int:
        return sum(len(readers) for readers in self._readers.values())

    # --- telling -----------------------------------------------------------------------------------

    def tell(self, topic: str, frames: Sequence[Frame]) -> None:
        """To every reader of the topic in any process."""
        self._on_loop(self._deliver, topic, frames)
        self._tell_others(topic, {"type": "frames", "topic": topic, "frames": frames})

    def tell_delta(self, topic: str, frame: Frame) -> None:
        """`tell` for the hot path: on the hub's loop already."""
        self._deliver(topic, (frame,))
        self._tell_others(topic, {"type": "frames", "topic": topic, "frames": (frame,)})

    def close_readers(self, topic: str, reason: str) -> None:
        self._on_loop(self._close_here, topic, reason)
        self._tell_others(topic, {"type": "close", "topic": topic, "reason": reason})

    def stop_run(self, run_id: str) -> None:
        """Hurries the process that holds the run; it also looks at the row once a second."""
        self._on_loop(self.on_stop, run_id)
        self._tell_others(ALL_WEB_PROCESSES, {"type": "stop", "run_id": run_id})

    def _on_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        if self.loop is not None:
            self.loop.call_soon_threadsafe(call, *arguments)

    def _deliver(self, topic: str, frames: Sequence[Frame]) -> None:
        for reader in tuple(self._readers.get(topic, ())):
            for frame in frames:
                reader.deliver(topic, frame)

    def _close_here(self, topic: str, reason: str) -> None:
        for reader in tuple(self._readers.get(topic, ())):
            reader.close(reason)

    def _tell_others(self, group: str, message: dict[str, Any]) -> None:
        if not self._has_other_processes:
            return
        sending = self._try_layer("group_send", group, {**message, "origin": self.origin})
        if self.loop is not None:
            asyncio.run_coroutine_threadsafe(sending, self.loop)
        else:
            async_to_sync(lambda: sending)()

    async def _try_layer(self, method: str, *arguments: Any) -> None:
        try:
            await getattr(get_channel_layer(), method)(*arguments)
        except Exception:
            # Redis is away. Rows and log have everything; the readers' processes look there.
            log.warning("The channel layer failed at %s.", method, exc_info=True)

    # --- hearing -----------------------------------------------------------------------------------

    async def _receive_forever(self) -> None:
        while True:
            try:
                await self._receive()
            except asyncio.CancelledError:
                raise
            except Exception:
                log.warning("The channel layer is away; trying again.", exc_info=True)
                self._channel = ""
                await asyncio.sleep(1)

    async def _receive(self) -> None:
        layer = get_channel_layer()
        channel = await layer.new_channel()
        for topic in (ALL_WEB_PROCESSES, *self._readers):
            await layer.group_add(topic, channel)
        self._channel = channel
        while True:
            self._hear(await layer.receive(channel))

    def _hear(self, message: dict[str, Any]) -> None:
        if message["origin"] == self.origin:
            return
        if message["type"] == "frames":
            self._deliver(message["topic"], [Frame(*frame) for frame in message["frames"]])
        elif message["type"] == "close":
            self._close_here(message["topic"], message["reason"])
        elif message["type"] == "stop":
            self.on_stop(message["run_id"])

    # --- healing -----------------------------------------------------------------------------------

    async def _heal_forever(self) -> None:
        while True:
            await asyncio.sleep(HEAL_S)
            try:
                await self._heal()
            except Exception:
                log.warning("Looking for missed events failed; trying again.", exc_info=True)

    async def _heal(self) -> None:
        """Tells readers how far the logs of their conversations are, in case a hint got lost."""
        prefix = conversation_topic("")
        watched = [topic.removeprefix(prefix) for topic in self._readers if topic.startswith(prefix)]
        if not watched:
            return
        for conversation_id, last_seq in (await in_database(last_seqs)(watched)).items():
            for reader in tuple(self._readers.get(conversation_topic(conversation_id), ())):
                reader.catch_up(str(conversation_id), last_seq)


hub = Hub()


def tell_facts(
    sender: Any, *, conversation_id: Any, user_id: Any, payloads: list[dict[str, Any]], **_: Any
) -> None:
    frames = [encode_frame(payload) for payload in payloads]
    hub.tell(conversation_topic(conversation_id), frames)
    for_user = [frame for frame in frames if frame.type in TOLD_TO_USER]
    if for_user:
        hub.tell(user_topic(user_id), for_user)


facts_committed.connect(tell_facts, dispatch_uid="live.tell_facts")


def close_user(user_id: Any) -> None:
    """Ends the user's connections everywhere: deactivated, deleted or signed out."""
    hub.close_readers(user_topic(user_id), "signed_out")
