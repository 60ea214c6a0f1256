"""A client of the ASGI application: sends concurrent requests, reads streams and disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from chatapp.operations.serving.asgi import http_application
from tests.servers.waiting import PATIENCE_S

V1 = "/api/v1"


@dataclass
class Answer:
    """A response. `content` is complete unless this is a stream; `hang_up` disconnects as a client would."""

    status_code: int
    headers: dict[str, str]
    task: asyncio.Task[None]
    disconnect: asyncio.Event
    chunks: asyncio.Queue[bytes | None]
    content: bytes = b""

    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.json()["error"]
        return error

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    async def parts(self) -> AsyncIterator[bytes]:
        while (part := await asyncio.wait_for(self.chunks.get(), PATIENCE_S)) is not None:
            yield part

    async def hang_up(self) -> None:
        self.disconnect.set()
        await asyncio.wait_for(asyncio.gather(self.task, return_exceptions=True), PATIENCE_S)


@dataclass
class Program:
    headers: Mapping[str, str] = field(default_factory=dict)
    address: str = "127.0.0.1"

    async def get(self, path: str, headers: Mapping[str, str] | None = None, **query: Any) -> Answer:
        return await self.call("GET", path, query=query, headers=headers)

    async def post(self, path: str, headers: Mapping[str, str] | None = None, **fields: Any) -> Answer:
        return await self.call("POST", path, body=fields, headers=headers)

    async def patch(self, path: str, **fields: Any) -> Answer:
        return await self.call("PATCH", path, body=fields)

    async def delete(self, path: str) -> Answer:
        return await self.call("DELETE", path)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send `body` unchanged if it is bytes, otherwise as JSON."""
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        scope = self._scope(
            method, path if path.startswith("/") else f"{V1}/{path}", raw, query or {}, headers or {}
        )
        sent: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        disconnect = asyncio.Event()
        task = asyncio.create_task(_serve(scope, raw, sent, disconnect))
        try:
            return await _read_answer(sent, task, disconnect)
        except asyncio.CancelledError:
            disconnect.set()
            await task
            raise

    def _scope(
        self, method: str, path: str, raw: bytes, query: Mapping[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any]:
        sent = {
            "host": "localhost",
            "content-type": "application/json",
            "content-length": str(len(raw)),
            **self.headers,
            **headers,
        }
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": urlencode(query).encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": [self.address, 50_000],
            "server": ["127.0.0.1", 8000],
        }


async def _serve(
    scope: dict[str, Any], raw: bytes, sent: asyncio.Queue[dict[str, Any] | None], disconnect: asyncio.Event
) -> None:
    requests = [{"type": "http.request", "body": raw, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if requests:
            return requests.pop()
        await disconnect.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.put_nowait(message)

    try:
        await http_application(scope, receive, send)
    finally:
        sent.put_nowait(None)


async def _read_answer(
    sent: asyncio.Queue[dict[str, Any] | None], task: asyncio.Task[None], disconnect: asyncio.Event
) -> Answer:
    start = await asyncio.wait_for(sent.get(), PATIENCE_S)
    assert start is not None, f"the application answered nothing: {task.exception()!r}"
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    answer = Answer(start["status"], headers, task, disconnect, asyncio.Queue())
    if answer.is_stream:
        forwarding = asyncio.create_task(_forward(sent, answer.chunks))
        task.add_done_callback(lambda _: forwarding)  # keeps a reference to the task
        return answer
    while (message := await asyncio.wait_for(sent.get(), PATIENCE_S)) is not None:
        answer.content += message.get("body", b"")
    await task
    return answer


async def _forward(sent: asyncio.Queue[dict[str, Any] | None], chunks: asyncio.Queue[bytes | None]) -> None:
    while (message := await sent.get()) is not None:
        if message.get("body"):
            chunks.put_nowait(message["body"])
    chunks.put_nowait(None)
