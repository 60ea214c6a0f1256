"""One HTTP connection. Responds to malformed and slow requests with errors in the API's format."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import Any

from chatapp.operations.errors import Malformed, RateLimited, ServiceError, Unauthorized
from chatapp.operations.serving.without_tls import HTTPChannel, twisted_reactor

LINGER_S = 5.0
RETRY_AFTER_S = 5
LENGTH_DIGITS = 20
TARGETS = (b"/", b"http://", b"https://")
"""How a request target begins. `*` and a tunnel's `host:port` are refused."""
HOST = re.compile(rb"(?:[\w.~%-]+|\[[0-9A-Fa-f:.]+\])(?::\d{0,5})?")
"""A name or an address, and a port. If two hosts were joined, each parser could choose another one."""
ONCE = frozenset(
    (
        b"authorization",
        b"content-encoding",
        b"content-length",
        b"content-range",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"if-range",
        b"last-event-id",
        b"mcp-protocol-version",
        b"mcp-session-id",
        b"origin",
        b"proxy-authorization",
        b"range",
        b"referer",
        b"sec-fetch-site",
        b"sec-websocket-key",
        b"sec-websocket-version",
        b"transfer-encoding",
        b"upgrade",
        b"x-csrftoken",
    )
)
"""Headers that may occur only once, or a proxy may have read the other one. Headers with lists may be repeated."""
reactor: Any = twisted_reactor
UntypedChannel: Any = HTTPChannel  # Twisted annotates a part of it only


class RequestTimeout(ServiceError):
    code = "request_timeout"
    status = 408


class Channel(UntypedChannel):  # type: ignore[misc]
    """Limits the time for each part of a request. Single bytes do not extend it."""

    def connectionMade(self) -> None:
        self.is_refused = False
        self.is_idle = True
        self.request_line = b""
        self.body_began: float | None = None
        self.expiry: Any = None
        super().connectionMade()
        self.limits = self.factory.server.limits
        if self.factory.server.count_connection(self.transport):
            self._expire_in(self.limits.idle_s)
        else:
            self.refuse(busy("Too many connections come from your address."))
            self.loseConnection()

    @property
    def path(self) -> bytes:
        return self.request_line.split(b" ")[1].partition(b"?")[0]

    @property
    def is_http_1_1(self) -> bool:
        return self.request_line.endswith(b" HTTP/1.1")

    # --- receiving ---------------------------------------------------------------------------------

    def dataReceived(self, data: bytes) -> None:
        if self.is_refused:
            return
        if self.is_idle:
            self.is_idle = False
            self._expire_in(self.limits.headers_s)
        super().dataReceived(data)

    def lineReceived(self, line: bytes) -> bool | None:
        """Return True to stop reading lines."""
        known = len(self.requests)
        super().lineReceived(line)
        if len(self.requests) > known:
            self.request_line = line
            if not self.is_refused and not self._path.startswith(TARGETS):
                self._respondToBadRequestAndDisconnect()
        return self.is_refused or None

    def lineLengthExceeded(self, line: bytes) -> None:
        self._respondToBadRequestAndDisconnect()

    def headerReceived(self, line: bytes) -> bool:
        """Refuse headers that another server may read differently, if Twisted does not: a transfer encoding other than
        "chunked" or before HTTP/1.1, a length with too many digits, an invalid Host, and a second header of those in
        ONCE."""
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        is_chunked = value.lower() == b"chunked" and self._version == b"HTTP/1.1"
        if (
            (name == b"transfer-encoding" and not is_chunked)
            or (name == b"content-length" and len(value) > LENGTH_DIGITS)
            or (name == b"host" and not HOST.fullmatch(value))
            or (name in ONCE and self.requests[-1].requestHeaders.hasHeader(name))
        ):
            self._respondToBadRequestAndDisconnect()
            return False
        return bool(super().headerReceived(line))

    def allHeadersReceived(self) -> None:
        """Refuse HTTP/1.1 without a Host, as RFC 9112 requires. Join several Cookie headers, which HTTP/2 allows,
        because Django, Channels and the handshake would each read them differently."""
        headers = self.requests[-1].requestHeaders
        if self.is_http_1_1 and not headers.hasHeader(b"host"):
            self._respondToBadRequestAndDisconnect()
        if len(cookies := headers.getRawHeaders(b"cookie", [])) > 1:
            headers.setRawHeaders(b"cookie", [b"; ".join(cookies)])
        self.body_began = reactor.seconds()
        self._expire_in(self.limits.body_s)
        super().allHeadersReceived()

    def allContentReceived(self) -> None:
        self.body_began = None
        self._cancel_expiry()
        super().allContentReceived()

    def requestDone(self, request: Any) -> None:
        """Wait for the next request, which may have arrived already."""
        self.is_idle = True
        self._expire_in(self.limits.idle_s)
        super().requestDone(request)

    # --- deadlines and the end ---------------------------------------------------------------------

    def _expire_in(self, seconds: float) -> None:
        self._cancel_expiry()
        self.expiry = reactor.callLater(seconds, self._expire)

    def _cancel_expiry(self) -> None:
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None

    def _expire(self) -> None:
        self.expiry = None
        if self.is_idle:
            self.loseConnection()
            # If the client does not read, unsent data would keep the connection open.
            reactor.callLater(LINGER_S, self.transport.abortConnection)
        elif self.body_began is None:
            self.refuse(RequestTimeout("The headers of the request did not arrive in time."))
        elif (left_s := self._body_left_s(self.body_began)) > 0:
            self._expire_in(left_s)
        else:
            self.refuse(RequestTimeout("The body of the request did not arrive in time."))

    def _body_left_s(self, began: float) -> float:
        earned_s = self.requests[-1].received_bytes / self.limits.body_bytes_per_s
        return float(began + self.limits.body_s + earned_s - reactor.seconds())

    def _respondToBadRequestAndDisconnect(self) -> None:
        """Respond to what Twisted cannot parse, as the API does. Twisted has no public method for this."""
        self.refuse(Malformed("This is not a well-formed HTTP request."))

    def refuse(self, error: ServiceError) -> None:
        """Respond at once, and continue to read for some seconds, because a reset would discard the response."""
        if self.is_refused:
            return
        self.is_refused = True
        # The next bytes on the connection may belong to the refused request.
        self.persistent = False
        self._cancel_expiry()
        body = encode_error(error)
        lines = [
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Cache-Control: private, no-store",
            "Connection: close",
        ]
        if isinstance(error, Unauthorized):
            lines.append("WWW-Authenticate: Bearer")
        if isinstance(error, RateLimited):
            lines.append(f"Retry-After: {error.retry_after_s}")
        self.transport.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.transport.loseWriteConnection()
        reactor.callLater(LINGER_S, self.transport.abortConnection)

    def connectionLost(self, reason: Any) -> None:
        self._cancel_expiry()
        self.factory.server.forget_connection(self.transport)
        super().connectionLost(reason)


def busy(sentence: str) -> RateLimited:
    return RateLimited(f"{sentence} Please wait {RETRY_AFTER_S} s.", retry_after_s=RETRY_AFTER_S)


def encode_error(error: ServiceError) -> bytes:
    """Return an error in the API's format."""
    content = {"code": error.code, "message": error.message}
    if error.details is not None:
        content["details"] = error.details
    return json.dumps({"error": content}).encode()
