"""WebSockets on daphne's classes: limited frames, cheap sending, close codes with a reason."""

from __future__ import annotations

import struct
from typing import Any

from chatapp.operations.serving.server_limits import Gate
from chatapp.operations.serving.without_tls import WebSocketFactory, WebSocketProtocol

TOO_BIG = 1009
TEXT_FRAME = 0x81
# A control frame has at most 125 bytes, two of them for the code.
REASON_MAX_BYTES = 123


class Socket(WebSocketProtocol):
    """A socket. Its `gate` is closed while the client does not read: the sender waits, and its bounded queue fills."""

    def makeConnection(self, transport: Any) -> None:
        self.gate = Gate(transport.abortConnection)
        transport.unregisterProducer()  # the HTTP channel with which this connection began
        super().makeConnection(transport)
        transport.registerProducer(self.gate, True)

    def connectionLost(self, *reason: Any) -> None:
        self.factory.server_class.forget_connection(self.transport)
        super().connectionLost(*reason)

    def handle_reply(self, message: dict[str, Any]) -> None:
        kind = message["type"]
        if kind == "websocket.send" and self.state in (self.STATE_CLOSING, self.STATE_CLOSED):
            return  # the client is gone; autobahn would raise
        if kind == "websocket.send" and message.get("text") is not None and self.state == self.STATE_OPEN:
            self.send_text(message["text"])
        elif kind == "websocket.close" and self.state != self.STATE_CONNECTING:
            self.close_with(message.get("code") or 1000, message.get("reason") or "")
        else:
            if kind == "websocket.accept":  # the application knows the user
                self.server.forget_connection(self.transport)
            super().handle_reply(message)

    def send_text(self, text: str) -> None:
        """Send one frame, directly to the kernel if nothing is buffered. Twisted would take two more system calls and a
        turn of the event loop for each frame, and autobahn four times the CPU."""
        data = encode_text_frame(text.encode())
        transport = self.transport
        # Append it: if written directly, the frame would overtake buffered data.
        if transport.dataBuffer or transport._tempDataBuffer:
            transport.write(data)
            return
        written = transport.writeSomeData(data)
        # Twisted returns errors of the kernel instead of raising them.
        if isinstance(written, BaseException):
            transport.abortConnection()
        elif written < len(data):
            transport.write(data[written:])

    def close_with(self, code: int, reason: str) -> None:
        """Close the socket. Allow codes that autobahn reserves, such as 1001 and 1012."""
        if self.state == self.STATE_OPEN:
            self.sendCloseFrame(code, reason.encode()[:REASON_MAX_BYTES], isReply=False)

    def _max_message_size_exceeded(self, msg_size: int, max_msg_size: int, reason: str) -> None:
        self._fail_connection(
            TOO_BIG, f"A frame may have at most {max_msg_size:,} bytes. Send larger messages over HTTP."
        )


def encode_text_frame(payload: bytes) -> bytes:
    """Return the frame of RFC 6455, section 5.2. A server does not mask."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", TEXT_FRAME, size) + payload
    if size < 1 << 16:
        return struct.pack("!BBH", TEXT_FRAME, 126, size) + payload
    return struct.pack("!BBQ", TEXT_FRAME, 127, size) + payload


class Factory(WebSocketFactory):
    protocol = Socket
