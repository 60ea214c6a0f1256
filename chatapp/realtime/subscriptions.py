"""One reader's view of the conversations it watches: facts in order and without gaps, deltas as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from chatapp.operations.database import persistently
from chatapp.realtime.event_log import last_seqs, read_after
from chatapp.realtime.hub import Frame, conversation_topic, encode_frame, hub

MAX_QUEUED_FRAMES = 2_000
MAX_QUEUED_CHARS = 8_000_000
REPLAY_PAGE = 500


@dataclass(slots=True)
class _Cursor:
    """`last_seq` was queued; `known_seq` is the highest the log is known to hold."""

    last_seq: int
    known_seq: int
    is_reading_log: bool = False


class Connection:
    """A bounded queue of frames. `frames()` is its one consumer; everything else may be called at any time."""

    def __init__(self, holder: str = "") -> None:
        self.holder = holder
        self.closed_because: str | None = None
        self._queue: deque[Frame | str] = deque()
        self._queued_chars = 0
        self._wake = asyncio.Event()
        self._cursors: dict[str, _Cursor] = {}

    async def watch(self, conversation_id: UUID, after_seq: int) -> None:
        """Deliver from the fact after `after_seq` on."""
        key = str(conversation_id)
        self._cursors[key] = _Cursor(after_seq, after_seq)
        await hub.subscribe(self, conversation_topic(key))
        # Looked at only now: a fact between an earlier look and the first hint would be missed until the next one.
        found = await persistently(last_seqs)([key])
        self.catch_up(key, found.get(conversation_id, after_seq))

    async def unwatch(self, conversation_id: UUID) -> None:
        if self._cursors.pop(str(conversation_id), None) is not None:
            await hub.unsubscribe(self, conversation_topic(conversation_id))

    async def unwatch_all(self) -> None:
        for key in list(self._cursors):
            await self.unwatch(UUID(key))

    def deliver(self, topic: str, frame: Frame) -> None:
        cursor = self._cursors.get(frame.conversation_id)
        is_watched_elsewhere = cursor is not None and topic != conversation_topic(frame.conversation_id)
        if is_watched_elsewhere:
            return
        if cursor is None or frame.seq is None:
            self._put(frame)
        elif frame.seq == cursor.last_seq + 1 and not cursor.is_reading_log:
            cursor.last_seq = cursor.known_seq = frame.seq
            self._put(frame)
        else:
            self.catch_up(frame.conversation_id, frame.seq)

    def catch_up(self, conversation_id: str, last_seq: int) -> None:
        cursor = self._cursors.get(conversation_id)
        if cursor is None:
            return
        cursor.known_seq = max(cursor.known_seq, last_seq)
        if cursor.known_seq > cursor.last_seq and not cursor.is_reading_log:
            cursor.is_reading_log = True
            self._put(conversation_id)

    def close(self, reason: str) -> None:
        self.closed_because = self.closed_because or reason
        self._wake.set()

    def _put(self, item: Frame | str) -> None:
        self._queue.append(item)
        if isinstance(item, Frame):
            self._queued_chars += len(item.text)
        if len(self._queue) > MAX_QUEUED_FRAMES or self._queued_chars > MAX_QUEUED_CHARS:
            self._queue.clear()
            self.close("too_slow")
        self._wake.set()

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield frames until `close`; what was queued before it still comes."""
        while True:
            while self._queue:
                item = self._queue.popleft()
                if isinstance(item, Frame):
                    self._queued_chars -= len(item.text)
                    yield item
                    continue
                async for frame in self._read_log(item):
                    yield frame
            if self.closed_because:
                return
            self._wake.clear()
            if not self._queue and not self.closed_because:
                await self._wake.wait()

    async def _read_log(self, conversation_id: str) -> AsyncIterator[Frame]:
        """Yield the facts up to the end of the log; those published meanwhile only raise `known_seq`."""
        cursor = self._cursors.get(conversation_id)
        while cursor is not None and cursor.known_seq > cursor.last_seq:
            payloads = await persistently(read_after)(UUID(conversation_id), cursor.last_seq, REPLAY_PAGE)
            if not payloads:
                break
            for payload in payloads:
                cursor.last_seq = payload["seq"]
                yield encode_frame(payload)
        if cursor is not None:
            cursor.is_reading_log = False
