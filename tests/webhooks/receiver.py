"""A webhook receiver on a real socket, which records requests and returns scripted statuses."""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.servers.waiting import wait_for


@dataclass(frozen=True)
class Received:
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


class Receiver:
    """A local server: `with Receiver() as receiver: receiver.url`. `answers` are the statuses of the next responses,
    None for no response; after them it is 204."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: deque[int | None] = deque()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                status = receiver.answers.popleft() if receiver.answers else 204
                receiver.received.append(Received(headers, raw))
                if status is None:
                    return
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/hook"

    def wait_for(self, kind: str, count: int = 1) -> list[Received]:
        """Wait for this many requests of this event type, and return all of them."""

        def found() -> list[Received]:
            of_kind = [each for each in self.received if each.body["type"] == kind]
            return of_kind if len(of_kind) >= count else []

        return wait_for(found, what=f"{count} × {kind}")

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
