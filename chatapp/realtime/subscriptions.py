"""One reader's view of the conversations it watches: facts in order and without gaps, deltas as they come."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple
from uuid import UUID

from chatapp.operations.database.threads import retry_on_outage
from chatapp.realtime.event_log import last_seqs, read_after
from chatapp.realtime.hub import Frame, conversation_topic, encode_frame, hub

# A slow reader must not slow down a run: it is disconnected, and catches up when it connects again.
MAX_QUEUED_FRAMES = 2_000
MAX_QUEUED_CHARS = 8_000_000
REPLAY_PAGE = 500


class _Gap(NamedTuple):
    """A queue item for the facts after `after_seq` up to `last_seq`. They are read from the log at their turn, because
    later items are queued behind them."""

    conversation_id: str
    after_seq: int
    last_seq: int


class Connection:
    """A bounded queue of frames. `frames()` is its only consumer; the other methods may be called at any time."""

    def __init__(self, holder: str = "") -> None:
        self.holder = holder
        self.closed_because: str | None = None
        self._queue: deque[Frame | _Gap] = deque()
        self._queued_chars = 0
        self._wake = asyncio.Event()
        self._queued_seqs: dict[str, int] = {}
        """The number of the last fact queued so far, per watched conversation."""

    async def watch(self, conversation_id: UUID, after_seq: int) -> None:
        """Deliver the facts after `after_seq`, and all later frames."""
        key = str(conversation_id)
        # Set it before subscribing, because facts that arrive at once are compared with it.
        self._queued_seqs[key] = after_seq
        await hub.subscribe(self, conversation_topic(key))
        # Read it only after subscribing, or a fact stored in between would be missed until the next one arrives.
        found = await retry_on_outage(last_seqs)([key])
        self.catch_up(key, found.get(conversation_id, after_seq))

    async def unwatch(self, conversation_id: UUID) -> None:
        if self._queued_seqs.pop(str(conversation_id), None) is not None:
            await hub.unsubscribe(self, conversation_topic(conversation_id))

    async def unwatch_all(self) -> None:
        for key in list(self._queued_seqs):
            await self.unwatch(UUID(key))

    def deliver(self, topic: str, frame: Frame) -> None:
        queued_seq = self._queued_seqs.get(frame.conversation_id)
        is_watched_elsewhere = queued_seq is not None and topic != conversation_topic(frame.conversation_id)
        # Skip the sidebar's copy of an event that the conversation's topic delivers, too.
        if is_watched_elsewhere:
            return
        if queued_seq is None or frame.seq is None:
            self._put(frame)
        elif frame.seq == queued_seq + 1:
            self._queued_seqs[frame.conversation_id] = frame.seq
            self._put(frame)
        else:
            # Either after a gap, which is read from the log, or a duplicate, which `catch_up` ignores.
            self.catch_up(frame.conversation_id, frame.seq)

    def catch_up(self, conversation_id: str, last_seq: int) -> None:
        queued_seq = self._queued_seqs.get(conversation_id)
        if queued_seq is not None and last_seq > queued_seq:
            self._queued_seqs[conversation_id] = last_seq
            self._put(_Gap(conversation_id, queued_seq, last_seq))

    def close(self, reason: str) -> None:
        self.closed_because = self.closed_because or reason
        self._wake.set()

    def _put(self, item: Frame | _Gap) -> None:
        self._queue.append(item)
        if isinstance(item, Frame):
            self._queued_chars += len(item.text)
        if len(self._queue) > MAX_QUEUED_FRAMES or self._queued_chars > MAX_QUEUED_CHARS:
            # Drop the queue: the reader continues after the last fact it got.
            self._queue.clear()
            self.close("too_slow")
        self._wake.set()

    async def frames(self) -> AsyncIterator[Frame]:
        """Yield frames until `close`. Frames queued before it are still yielded."""
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

    async def _read_log(self, gap: _Gap) -> AsyncIterator[Frame]:
        """Yield the facts of the gap; none if the conversation is gone or not watched any more."""
        after_seq = gap.after_seq
        while after_seq < gap.last_seq and gap.conversation_id in self._queued_seqs:
            payloads = await retry_on_outage(read_after)(UUID(gap.conversation_id), after_seq, REPLAY_PAGE)
            for payload in payloads:
                # Skip later ones: they are queued behind the deltas that they end, and would overtake these.
                if payload["seq"] <= gap.last_seq:
                    yield encode_frame(payload)
            after_seq = payloads[-1]["seq"] if payloads else gap.last_seq
