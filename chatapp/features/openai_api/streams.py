"""Server-sent events in OpenAI's format, and waiting for the first item."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from django.http.response import HttpResponseBase

from agents.errors import ModelError
from agents.types import ModelItem
from chatapp.accounts.callers import Caller
from chatapp.accounts.selectors import is_still_signed_in
from chatapp.features.openai_api.errors import error_body, status_of
from chatapp.operations.database.threads import retry_on_outage
from chatapp.operations.errors import ServiceError
from chatapp.realtime.api.sse import HEARTBEAT, sse_response, with_heartbeat
from chatapp.realtime.hub import Frame, holder_of, hub, user_topic

FIRST_ITEM_S = 5.0
"""How long to wait for the first item before sending headers. An earlier error gets its own HTTP status."""
DONE = b"data: [DONE]\n\n"

Items = AsyncGenerator[ModelItem, None]


async def after_first_item(items: Items) -> Items:
    """Return the items once the first has arrived or FIRST_ITEM_S have passed. Raise the error of the first."""
    first = asyncio.ensure_future(anext(items))
    try:
        done, _ = await asyncio.wait({first}, timeout=FIRST_ITEM_S)
        if done:
            first.result()
    except BaseException:
        # A generator cannot be closed while one of its steps is running.
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await items.aclose()
        raise
    return _resumed(first, items)


async def _resumed(first: asyncio.Future[ModelItem], items: Items) -> Items:
    try:
        async with aclosing(items):
            yield await first
            async for item in items:
                yield item
    finally:
        first.cancel()


def event_stream(caller: Caller, chunks: AsyncGenerator[bytes, None]) -> HttpResponseBase:
    """Return a response of chunks with heartbeats between them, which ends when the caller may no longer read."""
    return sse_response(_beating(caller, chunks))


class RightsReader:
    """Learns from the hub when the session or token that opened a stream has ended."""

    def __init__(self, caller: Caller) -> None:
        self.holder = holder_of(caller.session_key, caller.token_id)
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # The hub calls these methods of every reader; this one needs only `close`.
    def deliver(self, topic: str, frame: Frame) -> None: ...

    def catch_up(self, conversation_id: str, last_seq: int) -> None: ...

    def close(self, reason: str) -> None:
        if reason == "signed_out" and not self.over.done():
            self.over.set_result(None)


async def _beating(caller: Caller, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async def may_read() -> bool:
        return await retry_on_outage(is_still_signed_in)(caller.user.pk, caller.session_key, caller.token_id)

    rights, topic = RightsReader(caller), user_topic(caller.user.pk)
    await hub.subscribe(rights, topic)
    try:
        async with (
            aclosing(chunks),
            aclosing(with_heartbeat(chunks, may_read, rights.over)) as beats,
        ):
            async for chunk in beats:
                yield HEARTBEAT if chunk is None else chunk
    finally:
        await hub.unsubscribe(rights, topic)


def data_line(payload: dict[str, Any], event: str = "") -> bytes:
    """Encode one event. Events of chat completions have no name."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def error_of(error: ModelError | ServiceError) -> dict[str, Any]:
    """Return the body of an error in the middle of a stream."""
    if isinstance(error, ModelError):
        return error_body(status_of(error.category), error.category, error.message)
    return error_body(error.status, error.code, error.message, error.details)
