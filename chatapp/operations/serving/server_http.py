"""HTTP on daphne's classes: limited bodies, and responses no faster than their reader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from typing import Any

from chatapp.operations.errors import ServiceError, TooLarge, Unauthorized, Unavailable
from chatapp.operations.serving.server_channel import Channel, busy, encode_error
from chatapp.operations.serving.server_limits import HEADERS_BYTES, Budget, Gate
from chatapp.operations.serving.without_tls import HTTPFactory, WebRequest

log = logging.getLogger(__name__)

EVERYBODY = "everybody"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Request(WebRequest):
    """Counts its body for its user or address, and identifies the user before reading a large one.

    `user` is None until it is needed: small bodies count for the address, while its budget has room.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Django parses forms. Twisted would do so on the event loop, and give no reason for refusing one.
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)
        self.gate = Gate(self._drop)
        self.user: Hashable | None = None
        self.verifying: asyncio.Task[None] | None = None
        self.is_complete = False
        self.expects_continue = False
        self.received_bytes = 0
        self.admitted_bytes = 0
        self.held: tuple[Budget, Hashable, int] | None = None

    # --- the body ----------------------------------------------------------------------------------

    def gotLength(self, length: int | None) -> None:
        """Check the length before the body. The channel responds to an Expect header, unless it is removed here."""
        super().gotLength(length)
        if not self.channel.is_refused:
            self._admit(length or 0)
        if self.verifying or self.channel.is_refused:
            expected = self.requestHeaders.getRawHeaders(b"expect", [b""])[0].lower()
            self.expects_continue = expected == b"100-continue" and self.channel.is_http_1_1
            self.requestHeaders.removeHeader(b"expect")

    def handleContentChunk(self, data: bytes) -> None:
        if self.channel.is_refused:
            return
        self.received_bytes += len(data)
        super().handleContentChunk(data)
        if self.received_bytes > self.admitted_bytes and not self.verifying:
            self._admit(self.received_bytes)

    def _admit(self, size: int) -> None:
        """Accept a body of this size, refuse it, or identify its user first."""
        limits = self.server.limits
        limit = limits.bytes_of_route(self.channel.path)
        self.admitted_bytes = size
        if size > limit:
            self._refuse(TooLarge(f"A request may have at most {limit:,} bytes; this one is larger."))
        elif self.user is not None:
            if not self._hold(self.server.user_budget, self.user, size):
                self._refuse(busy("You are sending too much at once."))
        elif size > limits.anonymous_request_bytes or not self._hold(
            self.server.anonymous_budget, self.server.client_of(self), HEADERS_BYTES + size
        ):
            self.verifying = asyncio.get_running_loop().create_task(self._verify())
            # Do not read more of the body until the user is known.
            self.channel.transport.pauseProducing()

    async def _verify(self) -> None:
        """Continue with the request if its headers identify a user, else refuse it."""
        error: ServiceError | None = None
        try:
            self.user = await self.server.authenticate(self.server.scope_of(self))
        except ServiceError as refusal:
            error = refusal
        except Exception:
            log.exception("The user of a request could not be determined.")
            error = Unavailable()
        self.verifying = None
        if self.channel is None:  # the client is gone
            return
        self.channel.transport.resumeProducing()
        if self.channel.is_refused:
            return
        if error or self.user is None:
            self._refuse(error or self._anonymous_error())
            return
        # A chunked body has no length, and more of it may have arrived meanwhile.
        self._admit(max(self.admitted_bytes, self.received_bytes))
        if self.channel.is_refused:
            return
        if self.is_complete:
            self.process()
        elif self.expects_continue:
            self.channel.write(CONTINUE)

    def _anonymous_error(self) -> ServiceError:
        limit = self.server.limits.anonymous_request_bytes
        if self.admitted_bytes > limit:
            return Unauthorized(f"Sign in to send more than {limit:,} bytes.")
        return busy("Too many unfinished requests come from your address.")

    def _hold(self, budget: Budget, holder: Hashable, amount: int) -> bool:
        """Hold this amount instead of the former one. Return False, and hold nothing, if a budget has no room."""
        self.release()
        whole = self.server.whole_budgets[budget]
        if not budget.take(holder, amount):
            return False
        if not whole.take(EVERYBODY, amount):
            budget.give_back(holder, amount)
            return False
        self.held = (budget, holder, amount)
        return True

    def release(self) -> None:
        if self.held:
            budget, holder, amount = self.held
            budget.give_back(holder, amount)
            self.server.whole_budgets[budget].give_back(EVERYBODY, amount)
            self.held = None

    def _refuse(self, error: ServiceError) -> None:
        self.release()
        self.channel.refuse(error)

    def process(self) -> Any:
        """Start the application. A user's body counts until the response ends; an anonymous one is small and
        complete."""
        self.is_complete = True
        # `_verify` continues with it once the user is known.
        if self.channel.is_refused or self.verifying:
            return None
        if self.user is None:
            self.release()
        return super().process()

    # --- the response ------------------------------------------------------------------------------

    def handle_reply(self, message: dict[str, Any]) -> None:
        starts = message["type"] == "http.response.start" and not self.finished and self.channel is not None
        super().handle_reply(message)
        if starts:
            # The transport pauses its producer when its buffer is full.
            self.registerProducer(self.gate, True)

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """Send daphne's errors in the API's format."""
        headers = [(b"Content-Type", b"application/json")]
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        code = status_text.decode().lower().replace(" ", "_")
        content = encode_error(ServiceError(f"{body.rstrip('.')}.", code=code))
        self.handle_reply({"type": "http.response.body", "body": content})

    def _drop(self) -> None:
        if self.channel is not None:
            self.channel.transport.abortConnection()

    # --- the end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        self.gate.open()  # the connection sends the rest, with its own deadline
        if self.channel is not None:
            self.unregisterProducer()
        super().finish()

    def connectionLost(self, reason: Any) -> None:
        self.gate.open()
        super().connectionLost(reason)


class Factory(HTTPFactory):
    protocol = Channel

    def __init__(self, server: Any) -> None:
        super().__init__(server)
        self.timeOut = None  # the channel has its own deadlines, which single bytes do not extend

    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = Request
        return protocol
