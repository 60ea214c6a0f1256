"""Server-sent events: the same JSON as on the WebSocket, framed as lines, with a heartbeat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from django.conf import settings
from django.http import StreamingHttpResponse

from chatapp.operations.monitoring.metrics import active_streams
from chatapp.realtime.hub import Frame

# Lines that begin with a colon are comments, which readers ignore.
OPENED = b": listening\n\n"
HEARTBEAT = b": still here\n\n"

Item = TypeVar("Item")


def encode_fact_or_delta(frame: Frame) -> bytes:
    """Encode an event. Only facts have an id, after which a reader may continue."""
    # The text is JSON on one line; a line break would end the field.
    identity = f"id: {frame.seq}\n" if frame.seq is not None else ""
    return f"{identity}event: {frame.type}\ndata: {frame.text}\n\n".encode()


def encode_notice(payload: dict[str, Any], seq: int | None = None) -> bytes:
    """Encode an event that concerns only this stream: `error`, `reset`, `message.snapshot`."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return encode_fact_or_delta(Frame(payload.get("conversation_id", ""), payload["type"], seq, text))


def sse_response(chunks: AsyncGenerator[bytes, None]) -> StreamingHttpResponse:
    """Return the response. Django closes the iterator when the reader disconnects."""
    response = StreamingHttpResponse(_counted(chunks), content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "private, no-store, no-transform"
    # Otherwise nginx holds events back until they fill its buffer.
    response["X-Accel-Buffering"] = "no"
    return response


async def _counted(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    with active_streams.track_inprogress():
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk


async def with_heartbeat(
    items: AsyncIterator[Item],
    is_allowed: Callable[[], Awaitable[bool]],
    over: asyncio.Future[None] | None = None,
) -> AsyncGenerator[Item | None, None]:
    """Yield the items, and None every SSE_HEARTBEAT_S, so that proxies keep the connection. End at once when `over` is
    done, or at a heartbeat if the reader may not read any more."""
    loop = asyncio.get_running_loop()
    due = loop.time() + settings.SSE_HEARTBEAT_S
    ending: set[asyncio.Future[Any]] = {over} if over is not None else set()
    pending: asyncio.Future[Item] | None = None
    try:
        while True:
            if pending is None:
                pending = asyncio.ensure_future(anext(items))
            awaited: set[asyncio.Future[Any]] = {pending, *ending}
            # `wait_for` would cancel the pending item at each heartbeat, which ends its generator.
            done, _ = await asyncio.wait(
                awaited, timeout=max(0.0, due - loop.time()), return_when=asyncio.FIRST_COMPLETED
            )
            if done & ending:
                return
            # Rights are checked with the heartbeat, so it must come even if items never pause.
            if not done or loop.time() >= due:
                due = loop.time() + settings.SSE_HEARTBEAT_S
                if not await is_allowed():
                    return
                yield None
            if done:
                try:
                    item = pending.result()
                except StopAsyncIteration:
                    return
                pending = None
                yield item
    finally:
        if pending is not None:
            # Await it, too: a generator that is still running cannot be closed.
            pending.cancel()
            await asyncio.gather(pending, return_exceptions=True)
