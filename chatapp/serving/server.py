"""Our server on daphne's: one loop for HTTP and sockets, limits before buffering, an end without lost words."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from daphne.server import Server as DaphneServer
from twisted.internet import reactor as twisted_reactor
from twisted.logger import ILogObserver, LogEvent, globalLogBeginner
from zope.interface import provider

from chatapp.serving import server_http, server_sockets
from chatapp.serving.forwarded import Application
from chatapp.serving.server_http import Request
from chatapp.serving.server_sockets import Socket

reactor: Any = twisted_reactor
BODIES_AT_ONCE = 4
NO_TIMEOUT = -1
CLOSE_TIMEOUT_S = 2.0


@provider(ILogObserver)  # type: ignore[untyped-decorator]
def discard(event: LogEvent) -> None:
    """Twisted's own log; what matters of it is raised or told by us."""


class Server(DaphneServer):
    """Serves on a socket that already listens. `loop` runs from `run` on."""

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        *,
        max_request_bytes: int,
        max_frame_bytes: int,
    ) -> None:
        super().__init__(application, endpoints=["adopted"], signal_handlers=False, server_name="")
        self.listener = listener
        self.max_request_bytes = max_request_bytes
        self.max_body_bytes = BODIES_AT_ONCE * max_request_bytes
        self.body_bytes = 0
        self.max_frame_bytes = max_frame_bytes
        self.websocket_timeout = NO_TIMEOUT
        self.connections: dict[Any, dict[str, Any]] = {}
        self.port: Any = None
        self.somebody_left = asyncio.Event()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = reactor._asyncioEventloop
        return loop

    def run(self) -> None:
        """Until the process ends."""
        self.http_factory = server_http.Factory(self)
        self.ws_factory = server_sockets.Factory(self)
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            allowNullOrigin=True,
            openHandshakeTimeout=self.websocket_handshake_timeout,
            maxMessagePayloadSize=self.max_frame_bytes,
            maxFramePayloadSize=self.max_frame_bytes,
            failByDrop=False,  # else the client never reads why
        )
        globalLogBeginner.beginLoggingTo([discard], redirectStandardIO=False, discardBuffer=True)
        asyncio.set_event_loop(self.loop)
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        reactor.callWhenRunning(self.listen)
        reactor.run(installSignalHandlers=False)

    def listen(self) -> None:
        self.port = reactor.adoptStreamPort(self.listener.fileno(), self.listener.family, self.http_factory)
        self.listener.close()

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Waits while the client does not take what it was sent."""
        details = self.connections.get(protocol)
        if details is None or details.get("disconnected"):
            return
        if isinstance(protocol, Socket):
            protocol.handle_reply(message)
        else:
            await super().handle_reply(protocol, message)
        if protocol.gate.is_closed:
            await protocol.gate.wait()

    # --- the end -----------------------------------------------------------------------------------

    async def stop_listening(self) -> None:
        if self.port is not None:
            self.port.stopListening()
            self.port = None

    async def close_connections(self, code: int, reason: str) -> None:
        """Says goodbye to every socket and gives all connections a moment to end by themselves."""
        for protocol in list(self._open(Socket)):
            protocol.close_with(code, reason)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                while any(self._open(Socket, Request)):
                    self.somebody_left.clear()
                    await self.somebody_left.wait()
                # The process is about to end without twisted's own farewell: the last words must have left.
                while reactor.getWriters():  # noqa: ASYNC110 # twisted has no event for it
                    await asyncio.sleep(0.01)

    def protocol_disconnected(self, protocol: Any) -> None:
        super().protocol_disconnected(protocol)
        self.somebody_left.set()

    def _open(self, *kinds: type) -> Iterator[Any]:
        return (
            protocol
            for protocol, details in self.connections.items()
            if isinstance(protocol, kinds) and not details.get("disconnected")
        )
