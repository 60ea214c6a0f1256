"""Messages to the other web processes over Redis. No code waits for them; readers find lost ones in the log.

Redis may fail, hang or return at any time: messages to send are in a bounded queue, and joining is retried.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from channels.layers import InMemoryChannelLayer, get_channel_layer

from agents.libraries import Library

if TYPE_CHECKING:
    import redis
else:
    redis = Library("redis")

log = logging.getLogger(__name__)

EVERYBODY = "web"
# A hanging Redis keeps its connections open, so only a timeout ends the wait.
TIMEOUT_S = 2.0
FAREWELL_S = 1.0
TRY_AGAIN_S = 1.0
# If Redis stays away, the oldest are dropped: readers find facts in the log, and text in its message.
MAX_QUEUED = 5_000

Message = dict[str, Any]


class OtherProcesses:
    """Lives on the event loop of its web process. `send` may be called from any thread, and in other processes."""

    def __init__(self, receive: Callable[[Message], None]) -> None:
        self._take_message = receive
        self._origin = ""  # empty in processes that receive nothing
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._channel = ""
        self._wanted: set[str] = {EVERYBODY}
        self._joined: set[str] = set()
        self._is_away = False
        self._queue: deque[tuple[str, Message]] = deque(maxlen=MAX_QUEUED)
        self._has_work, self._is_idle = asyncio.Event(), asyncio.Event()

    @property
    def exist(self) -> bool:
        return not isinstance(get_channel_layer(), InMemoryChannelLayer)

    async def start(self) -> None:
        if self.exist:
            self._loop, self._origin = asyncio.get_running_loop(), uuid.uuid4().hex
            self._has_work, self._is_idle = asyncio.Event(), asyncio.Event()
            works = (self._send_forever, self._receive_forever, self._join_forever)
            self._tasks = [self._loop.create_task(work()) for work in works]

    async def stop(self) -> None:
        """Send the queued messages, if that is quick, and end."""
        if not self._tasks:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._is_idle.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=FAREWELL_S)
        self._tasks, self._loop, self._channel, self._joined = [], None, "", set()

    # --- sending -----------------------------------------------------------------------------------

    def send(self, group: str, message: Message) -> None:
        if not self.exist:
            return
        marked = {**message, "origin": self._origin}
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._put, group, marked)
        else:
            # A process without readers, such as a worker, has no loop that would send it later.
            async_to_sync(self._send)(group, marked)

    def send_from_loop(self, group: str, message: Message) -> None:
        """Send a message. Call it on the event loop."""
        if self._loop is not None:
            self._put(group, {**message, "origin": self._origin})

    def _put(self, group: str, message: Message) -> None:
        self._queue.append((group, message))
        self._has_work.set()

    async def _send_forever(self) -> None:
        while True:
            self._is_idle.set()
            await self._has_work.wait()
            self._is_idle.clear()
            # Clear it before emptying the queue, so that a message added meanwhile wakes this loop again.
            self._has_work.clear()
            while self._queue:
                # Remove it only after it is sent: Redis may be away for a while.
                item = self._queue[0]
                if not await self._send(*item):
                    await asyncio.sleep(TRY_AGAIN_S)
                elif self._queue and self._queue[0] is item:  # else the full queue dropped it
                    self._queue.popleft()

    async def _send(self, group: str, message: Message) -> bool:
        return await self._ask_layer("group_send", group, message)

    # --- receiving -----------------------------------------------------------------------------------

    async def join(self, group: str) -> None:
        """Receive messages sent to the group: at once if Redis responds, else soon."""
        self._wanted.add(group)
        if self._channel and not self._is_away:
            await self._join(group)

    async def leave(self, group: str) -> None:
        self._wanted.discard(group)
        if self._channel and group in self._joined:
            self._joined.discard(group)
            if not self._is_away:
                await self._ask_layer("group_discard", group, self._channel)
            # A reader that subscribed meanwhile may have joined before this leave took effect.
            if group in self._wanted:
                self._joined.discard(group)
                await self._join(group)

    async def _join(self, group: str) -> None:
        if group not in self._joined and await self._ask_layer("group_add", group, self._channel):
            self._joined.add(group)

    async def _join_forever(self) -> None:
        """Join the groups that could not be joined when they were wanted."""
        while True:
            await asyncio.sleep(TRY_AGAIN_S)
            for group in self._wanted - self._joined if self._channel else ():
                # It may have been left while another group was joined.
                if group in self._wanted:
                    await self._join(group)
                if self._is_away:
                    break

    async def _receive_forever(self) -> None:
        layer = get_channel_layer()
        while True:
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    channel = await layer.new_channel()
                # A new channel has not joined any group yet.
                self._channel, self._joined = channel, set()
                await asyncio.gather(*(self._join(group) for group in tuple(self._wanted)))
                while True:
                    self._take(await layer.receive(channel))
            except (redis.RedisError, OSError) as error:
                self._note_failure("receive", error)
                await asyncio.sleep(TRY_AGAIN_S)

    def _take(self, message: Message) -> None:
        # A group's messages come back to their sender, which has already delivered them.
        if message["origin"] != self._origin:
            self._take_message(message)

    # --- Redis -------------------------------------------------------------------------------------

    async def _ask_layer(self, method: str, *arguments: Any) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await getattr(get_channel_layer(), method)(*arguments)
        except (redis.RedisError, OSError) as error:
            # This includes TimeoutError, which is an OSError.
            self._note_failure(method, error)
            return False
        if self._is_away:
            log.warning("Redis is available again.")
        self._is_away = False
        return True

    def _note_failure(self, method: str, error: Exception) -> None:
        """Log that Redis is away, once per outage."""
        if not self._is_away:
            log.warning(
                "Redis is unavailable (%s: %s %s); events reach other processes later.",
                method,
                type(error).__name__,
                error,
            )
        self._is_away = True
