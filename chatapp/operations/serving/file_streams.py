"""Changes to Django's handling of requests and responses: synchronous streams, e.g. files, are sent piece by piece, and
forms never use a codec that is not a text encoding.

Django itself reads such streams into memory, with a warning.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncGenerator, Iterator
from itertools import islice
from typing import Any

from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase

TOGETHER = 64
"""Pieces to read in one call in a thread. A piece of a file has 4 KiB."""


TEXT_ENCODINGS = frozenset({"ascii", "cp1252", "iso8859-1", "utf-8", "utf-8-sig"})
"""Python's other codecs are not for text, e.g. rot13, or fail on invalid input."""


class Request(ASGIRequest):
    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        """Read forms as UTF-8 if they name another encoding, as Django does if it does not know the name."""
        super()._set_content_type_params(meta)  # type: ignore[misc] # the stubs do not have it
        if self.encoding and codecs.lookup(self.encoding).name not in TEXT_ENCODINGS:
            self.encoding = None  # type: ignore[assignment] # the default


class Handler(ASGIHandler):
    request_class = Request

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
