"""A minimal HTTP/1.1 server connection, cheap enough not to distort a benchmark."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


class HttpConnection(asyncio.Protocol):
    """Parses requests with a Content-Length. Answers one at a time, with keep-alive."""

    def __init__(
        self,
        answer: Callable[[HttpConnection, str, str, dict[str, str], bytes], None],
        closed: Callable[[HttpConnection], None],
    ) -> None:
        self._answer = answer
        self._closed = closed
        self._buffer = bytearray()
        self._busy = False
        self.transport: asyncio.Transport | None = None
        self.on_lost: Callable[[], None] | None = None
        self.on_drained: Callable[[], None] | None = None
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._closed(self)
        if self.on_lost:
            self.on_lost()

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        if self.on_drained:
            self.on_drained()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._busy:
            self._read_request()

    def _read_request(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        size = int(headers.get("content-length", "0"))
        if "expect" in headers and len(self._buffer) == end + 4:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if len(self._buffer) < end + 4 + size:
            return
        body = bytes(self._buffer[end + 4 : end + 4 + size])
        del self._buffer[: end + 4 + size]
        method, path, _ = lines[0].split(" ", 2)
        self._busy = True
        self._answer(self, method, path.partition("?")[0], headers, body)

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def begin_stream(self, content_type: str) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.write(head.encode())

    def end_stream(self) -> None:
        self.write(b"0\r\n\r\n")
        self.finish()

    def send(
        self, status: int, body: bytes, content_type: str, headers: dict[str, str] | None = None
    ) -> None:
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Answer')}", f"Content-Type: {content_type}"]
        lines += [f"Content-Length: {len(body)}"] + [
            f"{name}: {value}" for name, value in (headers or {}).items()
        ]
        self.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.finish()

    def send_json(self, data: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send(status, json.dumps(data).encode(), "application/json", headers)

    def finish(self) -> None:
        """Prepare for the next request on this connection."""
        self.on_lost = self.on_drained = None
        self._busy = False
        if self._buffer:
            self._read_request()

    def cut(self) -> None:
        """Abort the connection."""
        if self.transport is not None:
            self.transport.abort()
