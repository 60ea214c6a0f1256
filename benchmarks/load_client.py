"""A load client: users on open sockets of the service, and the same requests sent directly to the model server.

It parses as little as possible, because it shares its cores with the service that it measures.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

CONTINUATION, TEXT, CLOSE, PING, PONG = 0, 1, 8, 9, 10
FINAL = 0x80
ANSWER_LIMIT_S = 120.0
"""How long a user waits before giving up, so that the measurement ends even if the service collapses."""


@dataclass
class Load:
    """The results of one load. Times are in seconds."""

    tokens: int = 0
    first_after: list[float] = field(default_factory=list)
    """The time from each send to the first text."""
    errors: list[str] = field(default_factory=list)
    started: float = 0.0
    ended: float = 0.0

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / (self.ended - self.started)


class UserSocket(asyncio.Protocol):
    """The open socket of one user, who watches one conversation."""

    def __init__(self, host: str, port: int, token: str, conversation: str) -> None:
        self.address = f"{host}:{port}"
        self.token, self.conversation = token, conversation
        self.is_open: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answered: asyncio.Future[None] | None = None
        self.load = Load()
        self.turns = 0
        self._buffer = bytearray()
        self._message = b""
        self._shown = ""
        self._sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        head = (
            f"GET /ws/chat HTTP/1.1\r\nHost: {self.address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Authorization: Bearer {self.token}\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self.is_open.done():
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if b" 101 " not in self._buffer[:20]:
                self.is_open.set_exception(ConnectionError(self._buffer[:200].decode(errors="replace")))
                return
            del self._buffer[: end + 4]
            self.send({"type": "subscribe", "conversation_id": self.conversation, "after_seq": 0})
            self.is_open.set_result(None)
        while self._take_frame():
            pass

    def connection_lost(self, error: Exception | None) -> None:
        self._fail("the socket was closed")
        if not self.is_open.done():
            self.is_open.set_exception(ConnectionError("closed"))

    def close(self) -> None:
        self._transport.close()

    def send(self, payload: dict[str, object], opcode: int = TEXT) -> None:
        body = json.dumps(payload).encode()
        size = bytes([0x80 | len(body)]) if len(body) < 126 else b"\xfe" + len(body).to_bytes(2, "big")
        self._transport.write(bytes([FINAL | opcode]) + size + bytes(4) + body)  # masked with zeros

    async def ask(self, load: Load) -> None:
        """Send a message and read its answer to the end."""
        self.load, self._shown = load, ""
        self.turns += 1
        self.answered = asyncio.get_running_loop().create_future()
        self._sent_at = time.perf_counter()
        self.send(
            {
                "type": "message.send",
                "client_id": f"load-{self.conversation}-{self.turns}",
                "conversation_id": self.conversation,
                "content": f"load-{self.turns} of {self.conversation[-4:]}",
            }
        )
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                await self.answered
        except TimeoutError:
            load.errors.append(f"no answer within {ANSWER_LIMIT_S:.0f} s")

    def _take_frame(self) -> bool:
        """Take one frame from the buffer and return whether it was complete. A server does not mask its frames."""
        buffer = self._buffer
        if len(buffer) < 2:
            return False
        size, start = buffer[1] & 0x7F, 2
        if size >= 126:
            start = 4 if size == 126 else 10
            size = int.from_bytes(buffer[2:start], "big")
        if len(buffer) < start + size:
            return False
        opcode, body = buffer[0], bytes(buffer[start : start + size])
        del buffer[: start + size]
        if opcode & 0x0F in (CONTINUATION, TEXT):
            self._message += body
            if opcode & FINAL:
                whole, self._message = self._message, b""
                self._take_event(json.loads(whole))
        elif opcode & 0x0F == CLOSE:
            self._fail(f"closed: {body[2:].decode(errors='replace')}")
        elif opcode & 0x0F == PING:
            self._transport.write(bytes([FINAL | PONG, 0x80 | len(body)]) + bytes(4) + body)
        return True

    def _take_event(self, event: dict[str, object]) -> None:
        match event["type"]:
            case "text.delta":
                if not self._shown:
                    self.load.first_after.append(time.perf_counter() - self._sent_at)
                if event["offset"] != len(self._shown):
                    self.load.errors.append(
                        f"a delta at {event['offset']} where {len(self._shown)} was shown"
                    )
                self._shown += str(event["text"])
            case "message.completed":
                message = event["message"]
                assert isinstance(message, dict)
                if message["role"] == "assistant" and message["content"] != self._shown:
                    self.load.errors.append("what was shown is not what was stored")
            case "error":
                self._fail(str(event["message"]))
            case "run.finished":
                if event["status"] != "complete":
                    self.load.errors.append(f"{event['status']} {event.get('error')}")
                self.load.tokens += len(self._shown.split())
                self._end()

    def _fail(self, what: str) -> None:
        if self.answered is not None and not self.answered.done():
            self.load.errors.append(what)
            self._end()

    def _end(self) -> None:
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)


async def open_socket(host: str, port: int, token: str, conversation: str) -> UserSocket:
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(lambda: UserSocket(host, port, token, conversation), host, port)
    await socket.is_open
    return socket


async def ask_model(load: Load, host: str, port: int) -> None:
    """Send a request directly to the model server, over a plain socket."""
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps(
        {"model": "test-model", "stream": True, "messages": [{"role": "user", "content": "load"}]}
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    sent_at, has_begun = time.perf_counter(), False
    writer.write(head.encode() + body)
    while data := await reader.read(65536):
        count = data.count(b'"content":')
        if count and not has_begun:
            has_begun = True
            load.first_after.append(time.perf_counter() - sent_at)
        load.tokens += count
        if b"[DONE]" in data:
            break
    writer.close()


Ask = Callable[[Load], Awaitable[None]]


async def offer(asks: Sequence[Ask], over_s: float) -> Load:
    """Start the requests evenly over `over_s` seconds, without waiting for earlier ones. Return their results."""
    load = Load(started=time.perf_counter())

    async def one(number: int, ask: Ask) -> None:
        await asyncio.sleep(load.started + over_s * number / len(asks) - time.perf_counter())
        try:
            await ask(load)
        except Exception as error:
            load.errors.append(f"{type(error).__name__} {error}")

    await asyncio.gather(*(one(number, ask) for number, ask in enumerate(asks)))
    load.ended = time.perf_counter()
    return load
