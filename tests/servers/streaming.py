"""Writes a scripted answer to a connection at the scripted rate."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from tests.servers.behaviour import GOES_ON, Behaviour
from tests.servers.frames import AnswerFrames, event_frame
from tests.servers.http_socket import HttpConnection

_FAST_BLOCK = 32


class AnswerStream:
    """Sends the frames that are due. If the event loop is late, sends all overdue frames at once to keep the rate."""

    def __init__(
        self,
        connection: HttpConnection,
        behaviour: Behaviour,
        frames: AnswerFrames,
        note: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._behaviour = behaviour
        self._frames = frames
        self._note = note
        self._loop = asyncio.get_running_loop()
        self._sent = 0
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._limit = sys.maxsize if behaviour.is_endless else len(frames.tokens)
        self._is_held = behaviour.hold_after is not None
        self._is_over = False
        if behaviour.fault and behaviour.fault not in GOES_ON:
            self._limit = min(self._limit, behaviour.fault_after)
        connection.on_lost = self._lose
        connection.on_drained = self._tick

    def start(self) -> None:
        self._connection.begin_stream("text/event-stream")
        self._timer = self._loop.call_later(self._behaviour.delay_s, self._begin)

    def release(self) -> None:
        """Continue after a hold. An answer released before it has begun still begins after its delay."""
        if self._is_held:
            self._is_held = False
            if self._began:
                self._began = self._loop.time() - self._sent / (self._behaviour.rate or 1)
            self._tick()

    def _begin(self) -> None:
        self._began = self._loop.time()
        self._tick()

    def _count_due(self) -> int:
        step = self._behaviour.tokens_per_write
        if self._behaviour.rate == 0:
            due = self._sent + max(step, _FAST_BLOCK)
        else:
            due = max(int((self._loop.time() - self._began) * self._behaviour.rate) + 1, self._sent + step)
        if self._is_held:
            due = min(due, self._behaviour.hold_after or 0)
        return min(due, self._limit)

    def _tick(self) -> None:
        has_room = self._connection.transport is not None and not self._connection.is_full
        if self._is_over or not self._began or not has_room:
            return
        due = self._count_due()
        if due > self._sent:
            self._write_until(due)
        if self._sent >= self._limit and not self._is_held:
            self._end()
        elif not (self._is_held and self._sent >= (self._behaviour.hold_after or 0)):
            self._schedule()

    def _write_until(self, due: int) -> None:
        tokens = self._frames.tokens
        data = b"".join(tokens[self._sent : due])
        data += tokens[-1] * (due - max(self._sent, len(tokens)))
        if self._sent == 0:
            data = self._frames.opening + data
            self._note("first_token")
        self._connection.write(data)
        self._sent = due

    def _schedule(self) -> None:
        rate = self._behaviour.rate
        when = self._began + self._sent / rate if rate else self._loop.time()
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._tick)

    def _end(self) -> None:
        fault = self._behaviour.fault
        self._is_over = True
        self._note("finished")
        if fault == "cut":
            # Wait until the written bytes are sent, because an abort would discard them.
            self._loop.call_later(0.02, self._connection.cut)
            return
        if fault == "broken_json":
            self._connection.write(event_frame('{"id": "chatcmpl-test", "choices": [{"delta": {"cont'))
        if fault == "error_chunk":
            self._connection.write(event_frame(self._behaviour.error or {"error": {"message": "boom"}}))
        if not fault or fault in GOES_ON:
            self._connection.write(self._frames.closing)
        self._connection.end_stream()

    def _lose(self) -> None:
        if self._timer:
            self._timer.cancel()
        self._note("lost")
