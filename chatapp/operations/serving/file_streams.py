"""Sends files and other synchronous streams a piece at a time. Django reads them into memory first, and warns of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from itertools import islice
from typing import Any

from django.core.handlers.asgi import ASGIHandler
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase

TOGETHER = 64
"""Pieces read in one call of a thread. Those of a file have 4 KiB."""


class Handler(ASGIHandler):
    async def send_response(self, response: HttpResponseBase, send: Any) -> None:
        if isinstance(response, StreamingHttpResponse) and not response.is_async:
            pieces: Any = response.streaming_content
            response.streaming_content = _read_in_thread(pieces)
        await super().send_response(response, send)


async def _read_in_thread(pieces: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    while some := await asyncio.to_thread(_read_some, pieces):
        yield some


def _read_some(pieces: Iterator[bytes]) -> bytes:
    return b"".join(islice(pieces, TOGETHER))
