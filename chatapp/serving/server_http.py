"""HTTP on daphne's classes: bounded bodies, and no more answer in memory than the reader takes."""

from __future__ import annotations

import json
from typing import Any

from daphne.http_protocol import HTTPFactory, WebRequest
from twisted.internet import reactor as twisted_reactor

from chatapp.serving.server_gate import Gate

LINGER_S = 5.0
TOO_LARGE = (413, b"Content Too Large", "too_large")
BUSY = (503, b"Service Unavailable", "busy")
reactor: Any = twisted_reactor


class Request(WebRequest):
    """Refuses a body that is too large by its declared length, else as soon as more than that has arrived."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Django reads forms. Twisted would too, on the event loop, and has no words for one it does not like.
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)
        self.gate = Gate(self._drop)
        self.is_refused = False
        self.body_bytes = 0

    # --- the body ----------------------------------------------------------------------------------

    def gotLength(self, length: int | None) -> None:
        super().gotLength(length)
        if length is not None and length > self.server.max_request_bytes:
            self._refuse_size()

    def handleContentChunk(self, data: bytes) -> None:
        """Also counts the bodies of all requests, so that many large ones together stay bounded."""
        if self.is_refused:
            return
        self.body_bytes += len(data)
        self.server.body_bytes += len(data)
        if self.body_bytes > self.server.max_request_bytes:
            self._refuse_size()
        elif self.server.body_bytes > self.server.max_body_bytes:
            self._refuse(
                *BUSY, "The service is receiving too much at once. Please try again in a few seconds."
            )
        else:
            super().handleContentChunk(data)

    def _refuse_size(self) -> None:
        limit = self.server.max_request_bytes
        self._refuse(*TOO_LARGE, f"A request may have at most {limit:,} bytes; this one is larger.")

    def _refuse(self, status: int, reason: bytes, code: str, sentence: str) -> None:
        """Answers at once, then lets the client finish its sentence for a while: a reset would eat the answer."""
        self.is_refused = True
        self._release()
        self.requestHeaders.removeHeader(b"expect")
        body = encode_error(code, sentence)
        head = (
            b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n"
        )
        retry = b"Retry-After: 5\r\n" if status == BUSY[0] else b""
        transport = self.channel.transport
        transport.write(head % (status, reason, len(body)) + retry + b"\r\n" + body)
        transport.loseWriteConnection()
        self.channel.persistent = False
        reactor.callLater(LINGER_S, transport.abortConnection)

    def _release(self) -> None:
        self.server.body_bytes -= self.body_bytes
        self.body_bytes = 0

    def process(self) -> Any:
        if self.is_refused:
            return None
        return super().process()

    # --- the answer --------------------------------------------------------------------------------

    def handle_reply(self, message: dict[str, Any]) -> None:
        starts = message["type"] == "http.response.start" and not self.finished and self.channel is not None
        super().handle_reply(message)
        if starts:
            self.registerProducer(self, True)

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        """daphne's own errors, in the shape of ours."""
        headers = [(b"Content-Type", b"application/json")]
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        content = encode_error(status_text.decode().lower().replace(" ", "_"), f"{body.rstrip('.')}.")
        self.handle_reply({"type": "http.response.body", "body": content})

    def pauseProducing(self) -> None:
        self.gate.close()

    def resumeProducing(self) -> None:
        self.gate.open()

    def stopProducing(self) -> None:
        self.gate.open()

    def _drop(self) -> None:
        if self.channel is not None:
            self.channel.transport.abortConnection()

    # --- the end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        self._release()
        if self.channel is not None:
            self.unregisterProducer()
        super().finish()

    def connectionLost(self, reason: Any) -> None:
        self._release()
        self.gate.open()
        super().connectionLost(reason)


def encode_error(code: str, sentence: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": sentence}}).encode()


class Factory(HTTPFactory):
    def buildProtocol(self, addr: Any) -> Any:
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = Request
        return protocol
