"""A web server on loopback whose pages are set by the test, hostile ones included."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

Body = bytes | Callable[[Callable[[bytes], None]], None]


@dataclass
class WebPage:
    body: Body = b""
    content_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class WebServer:
    """Serves `pages` by path. `hosts` and `paths` record the Host header and the path of each request."""

    def __init__(self) -> None:
        self.pages: dict[str, WebPage] = {}
        self.hosts: list[str] = []
        self.paths: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> WebServer:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                web.hosts.append(self.headers["Host"])
                web.paths.append(self.path)
                page = web.pages.get(self.path, WebPage(b"not here", status=404))
                self.send_response(page.status)
                self.send_header("Content-Type", page.content_type)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    if callable(page.body):
                        page.body(self._write)
                    else:
                        self.wfile.write(page.body)
                except OSError:
                    return  # The client has disconnected.

            do_POST = do_DELETE = do_GET  # noqa: N815

            def _write(self, chunk: bytes) -> None:
                self.wfile.write(chunk)
                self.wfile.flush()

            def log_message(self, format: str, *args: object) -> None: ...

        return Handler
