"""The events of a conversation as a stream: replay, then live."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import close_old_connections
from django.http.response import HttpResponseBase
from ninja import Router
from ninja.params.functions import Header, Query

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.conversations.access import accessible_conversation
from chatapp.operations.http.schemas import answers
from chatapp.realtime.api.sse import encode_notice, sse_response
from chatapp.realtime.api.streams import ConversationReader
from memory.bounds import MAX_ID

router = Router(tags=["events"])

STREAM = {
    "responses": {
        200: {
            "description": (
                "Server-sent events. Facts carry their `seq` as id; a comment is sent every 15 seconds, unless the"
                " operators chose another interval."
            ),
            "content": {"text/event-stream": {"schema": {}}},
        }
    }
}


@router.get(
    "/conversations/{conversation_id}/events",
    auth=allow("chat", "read"),
    response=answers(404, ok=None),
    openapi_extra=STREAM,
)
async def read_events(
    request: ApiRequest,
    conversation_id: str,
    after_seq: int = Query(0, ge=0, le=MAX_ID, description="Replays the facts after this one."),
    last_event_id: int | None = Header(
        None,
        alias="Last-Event-ID",
        ge=0,
        le=MAX_ID,
        description="Takes precedence over `after_seq`, because browsers reconnect to the same address.",
    ),
) -> HttpResponseBase:
    """Replay the log, then send new events, until you disconnect or may no longer read.

    `reset` says that the log is shorter than you assume: fetch the conversation again.
    """
    row = await sync_to_async(accessible_conversation)(request.auth.user, conversation_id)
    await sync_to_async(close_old_connections)()  # the stream may last for hours
    after = after_seq if last_event_id is None else last_event_id
    chunks = ConversationReader(request.auth, str(row.pk)).chunks(
        min(after, row.last_seq), most=settings.CONNECTIONS_PER_USER
    )
    # Start the stream before choosing status and headers, so that one stream too many gets its own status.
    first = await anext(chunks)
    if after > row.last_seq:
        reset = {"type": "reset", "conversation_id": str(row.pk)}
        first = encode_notice(reset, seq=row.last_seq) + first
    return sse_response(_resumed(first, chunks))


async def _resumed(first: bytes, chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(chunks):
        yield first
        async for chunk in chunks:
            yield chunk
