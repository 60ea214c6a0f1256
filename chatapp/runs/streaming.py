"""Answers while they are being written: what was generated, sent to readers and stored."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

from agents.text import storable_text
from agents.ticks import ticks
from chatapp.operations.database.text import split_half
from chatapp.realtime.hub import Frame, Reader, conversation_topic, hub
from chatapp.runs.actions.runs import Lease, PartialAnswer

# Text that was shown is stored at most 1 s later. Half of that is left for the write itself.
CHECKPOINT_S = 0.5
SNAPSHOT_INTERVAL_S = 0.2


@dataclass(slots=True)
class _Stream:
    """Append-only text. Counts are in characters (code points)."""

    pieces: list[str] = field(default_factory=list)
    length: int = 0
    unsent: list[str] = field(default_factory=list)
    told: int = 0
    stored: int = 0
    half: str = ""
    has_gap: bool = False
    """The next text begins a new paragraph."""

    def append(self, text: str) -> None:
        if self.has_gap:
            self.has_gap = False
            end = self.pieces[-1]
            text = "\n" * max(0, 2 - len(end) + len(end.rstrip("\n"))) + text.lstrip()
        # A provider may split a character outside the BMP into two surrogate halves. ASCII text needs no check.
        if self.half or not text.isascii() or "\x00" in text:
            whole, self.half = split_half(self.half + text)
            text = storable_text(whole)
        self.pieces.append(text)
        self.unsent.append(text)
        self.length += len(text)

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            # Keep the joined text, because every checkpoint and every new reader needs all of it.
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def take_unsent(self) -> tuple[int, str]:
        """Return `(offset, text)` of the text that has not been sent to readers, and mark it as sent."""
        offset, text = self.told, "".join(self.unsent)
        self.unsent.clear()
        self.told = self.length
        return offset, text


class LiveAnswer:
    """One answer being written by this process."""

    def __init__(self, lease: Lease, conversation_id: str) -> None:
        self.lease = lease
        self.conversation_id = conversation_id
        self.topic = conversation_topic(conversation_id)
        self._ids = f'"conversation_id":"{conversation_id}","run_id":"{lease.run_id}","message_id":"{lease.answer_id}"'
        self.answer = _Stream()
        self.reasoning = _Stream()
        # Long ago, so that the first word is sent at once.
        self.last_sent_at = 0.0
        self._all_told_at = float("-inf")
        self._telling_all: asyncio.TimerHandle | None = None

    def begin_part(self) -> None:
        """Begin a new paragraph with the next text, because another model call continues this answer."""
        for stream in (self.answer, self.reasoning):
            stream.has_gap = stream.length > 0

    @property
    def length(self) -> int:
        return self.answer.length + self.reasoning.length

    @property
    def has_text(self) -> bool:
        """Return whether there is visible text: some models write only blank lines."""
        return bool(self.answer.text.strip())

    @property
    def partial(self) -> PartialAnswer:
        return PartialAnswer(
            self.lease,
            self.answer.text,
            self.reasoning.text,
            text_stored=self.answer.stored,
            reasoning_stored=self.reasoning.stored,
        )

    @property
    def is_stored(self) -> bool:
        return self.answer.stored == self.answer.length and self.reasoning.stored == self.reasoning.length

    def note_stored(self, partial: PartialAnswer) -> None:
        self.answer.stored, self.reasoning.stored = len(partial.text), len(partial.reasoning)

    def tell(self) -> None:
        """Send all new text to readers, as one delta per kind."""
        for stream, event_type in ((self.reasoning, "reasoning.delta"), (self.answer, "text.delta")):
            if stream.unsent:
                offset, text = stream.take_unsent()
                hub.publish_delta(self.topic, self._frame(event_type, offset, text))

    def tell_all(self) -> None:
        """Send the text so far to readers in other processes, which missed the beginning: at once, or at the end of
        SNAPSHOT_INTERVAL_S if it was sent within that time."""
        if self._telling_all is None:
            wait_s = max(0.0, self._all_told_at + SNAPSHOT_INTERVAL_S - time.monotonic())
            self._telling_all = asyncio.get_running_loop().call_later(wait_s, self._tell_all)

    def _tell_all(self) -> None:
        self._telling_all = None
        self._all_told_at = time.monotonic()
        for frame in self._so_far():
            hub.publish_elsewhere(self.topic, frame)

    def tell_reader(self, reader: Reader) -> None:
        """Send a new reader the text so far. Later deltas continue from there."""
        for frame in self._so_far():
            reader.deliver(self.topic, frame)

    def end(self) -> None:
        """Send the remaining text, and nothing after it."""
        self.tell()
        if self._telling_all is not None:
            self._telling_all.cancel()

    def _so_far(self) -> list[Frame]:
        self.tell()
        # Build it after `tell`, so that the next delta continues from here for new and old readers alike.
        told = ((self.reasoning, "reasoning.delta"), (self.answer, "message.snapshot"))
        return [self._frame(event_type, 0, stream.text) for stream, event_type in told if stream.length]

    def _frame(self, event_type: str, offset: int, text: str) -> Frame:
        # The shape of agents.events.TextDelta, built as a string because this runs for every token of every stream.
        at = datetime.now(UTC).isoformat(timespec="milliseconds")[:-6]
        encoded = f'{{"v":1,"type":"{event_type}",{self._ids},"at":"{at}Z","offset":{offset},"text":{_encode(text)}}}'
        return Frame(self.conversation_id, event_type, None, encoded)


_encode = json.JSONEncoder(ensure_ascii=False).encode


class DeltaPump:
    """Batches the text of runs into deltas: the first word at once, then all new text at each tick."""

    def __init__(self) -> None:
        self._waiting: dict[LiveAnswer, None] = {}

    def wrote(self, live: LiveAnswer) -> None:
        now, together = time.monotonic(), ticks()
        # Half an interval, so that text that arrives one tick after the last is sent at once.
        if now - live.last_sent_at > together.interval_s / 2 and live not in self._waiting:
            live.last_sent_at = now
            live.tell()
            return
        if not self._waiting:
            together.call_at_next(self._tell_waiting)
        self._waiting[live] = None

    def forget(self, live: LiveAnswer) -> None:
        """Send the remaining text and stop watching this answer."""
        self._waiting.pop(live, None)
        live.end()

    def _tell_waiting(self) -> None:
        now = time.monotonic()
        waiting, self._waiting = self._waiting, {}
        for live in waiting:
            live.last_sent_at = now
            live.tell()
