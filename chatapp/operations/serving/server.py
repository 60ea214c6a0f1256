"""The server, based on daphne: one event loop for HTTP and sockets, limits before buffering, a graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from typing import Any

from twisted.logger import ILogObserver, LogEvent, globalLogBeginner
from zope.interface import provider

from chatapp.operations.serving import server_http, server_sockets
from chatapp.operations.serving.forwarded import (
    Application,
    Scope,
    is_trusted,
    parse_proxies,
    read_claims,
    trust_proxies,
)
from chatapp.operations.serving.server_http import Request
from chatapp.operations.serving.server_limits import Budget, Limits, network_of
from chatapp.operations.serving.server_sockets import Socket
from chatapp.operations.serving.without_tls import DaphneServer, twisted_loop, twisted_reactor

reactor: Any = twisted_reactor
NO_TIMEOUT = -1
CLOSE_TIMEOUT_S = 2.0


@provider(ILogObserver)  # type: ignore[untyped-decorator]
def discard(event: LogEvent) -> None:
    """Drop Twisted's log, because errors are raised or logged here."""


class Server(DaphneServer):
    """Serves on a socket that already listens. `run` starts the event loop.

    `authenticate` returns the user that the headers of a scope identify, or None.
    """

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        *,
        limits: Limits,
        authenticate: Callable[[Scope], Awaitable[Hashable | None]],
        proxies: Sequence[str] = (),
    ) -> None:
        self.proxies = parse_proxies(proxies)
        super().__init__(
            trust_proxies(application, self.proxies),
            endpoints=["adopted"],
            # The launcher has its own handlers, which drain first.
            signal_handlers=False,
            # Without a name, no header identifies the server.
            server_name="",
        )
        self.listener = listener
        self.limits = limits
        self.authenticate = authenticate
        self.user_budget = Budget(limits.user_bytes)
        self.anonymous_budget = Budget(limits.anonymous_address_bytes)
        self.whole_budgets = {
            self.user_budget: Budget(limits.all_users_bytes),
            self.anonymous_budget: Budget(limits.all_strangers_bytes),
        }
        self.connection_budget = Budget(limits.connections_per_address)
        self.counted_connections: dict[Any, Hashable] = {}
        # Daphne would close each socket after a day.
        self.websocket_timeout = NO_TIMEOUT
        self.connections: dict[Any, dict[str, Any]] = {}
        self.port: Any = None
        self.connection_ended = asyncio.Event()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = twisted_loop
        return loop

    def run(self) -> None:
        """Serve until the process ends."""
        self.http_factory = server_http.Factory(self)
        self.ws_factory = server_sockets.Factory(self)
        self.ws_factory.setProtocolOptions(
            autoPingTimeout=self.ping_timeout,
            # `OriginCheck` decides about every origin.
            allowNullOrigin=True,
            openHandshakeTimeout=self.websocket_handshake_timeout,
            maxMessagePayloadSize=self.limits.frame_bytes,
            maxFramePayloadSize=self.limits.frame_bytes,
            failByDrop=False,  # otherwise the client never reads the reason
        )
        globalLogBeginner.beginLoggingTo([discard], redirectStandardIO=False, discardBuffer=True)
        asyncio.set_event_loop(self.loop)
        # As in daphne's `run`, which would open its own sockets.
        reactor.callLater(1, self.application_checker)
        reactor.callLater(2, self.timeout_checker)
        reactor.callWhenRunning(self.listen)
        reactor.run(installSignalHandlers=False)

    def listen(self) -> None:
        self.port = reactor.adoptStreamPort(self.listener.fileno(), self.listener.family, self.http_factory)
        # Twisted has duplicated the descriptor.
        self.listener.close()

    # --- limits of clients ----------------------------------------------------------------------------

    def count_connection(self, transport: Any) -> bool:
        """Return whether the address may have one more connection. Connections of trusted proxies are not counted."""
        address = transport.getPeer().host
        # A proxy has the connections of all its clients.
        if is_trusted(address, self.proxies):
            return True
        client = network_of(address)
        if not self.connection_budget.take(client, 1):
            return False
        self.counted_connections[transport] = client
        return True

    def forget_connection(self, transport: Any) -> None:
        """Stop counting a connection, because it is closed or its user is known."""
        client = self.counted_connections.pop(transport, None)
        if client is not None:
            self.connection_budget.give_back(client, 1)

    def scope_of(self, request: Request) -> Scope:
        """Return the request's headers and client as the application will see them."""
        raw = request.requestHeaders.getAllRawHeaders()
        headers = [(name.lower(), value) for name, values in raw for value in values]
        scope = {"type": "http", "client": [request.client.host, request.client.port], "headers": headers}
        return read_claims(scope, self.proxies)

    def client_of(self, request: Request) -> str:
        """Return the client of the request: its address or network."""
        return network_of(self.scope_of(request)["client"][0])

    # --- responses ---------------------------------------------------------------------------------

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send a message, and wait while the client does not read."""
        details = self.connections.get(protocol)
        if details is None or details.get("disconnected"):
            return
        if isinstance(protocol, Socket):
            protocol.handle_reply(message)
        else:
            await super().handle_reply(protocol, message)
        if protocol.gate.is_closed:
            await protocol.gate.wait()

    # --- shutdown ----------------------------------------------------------------------------------

    async def stop_listening(self) -> None:
        if self.port is not None:
            self.port.stopListening()
            self.port = None

    async def close_connections(self, code: int, reason: str) -> None:
        """Send a close frame to every socket, and wait some seconds for connections to end."""
        for protocol in list(self._open(Socket)):
            protocol.close_with(code, reason)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                while any(self._open(Socket, Request)):
                    self.connection_ended.clear()
                    await self.connection_ended.wait()
                # The process ends without twisted's shutdown, so the last data must be sent now.
                while reactor.getWriters():  # noqa: ASYNC110 # twisted has no event for it
                    await asyncio.sleep(0.01)

    def protocol_disconnected(self, protocol: Any) -> None:
        super().protocol_disconnected(protocol)
        if isinstance(protocol, Request):
            protocol.release()
        self.connection_ended.set()

    def _open(self, *kinds: type) -> Iterator[Any]:
        return (
            protocol
            for protocol, details in self.connections.items()
            if isinstance(protocol, kinds) and not details.get("disconnected")
        )
