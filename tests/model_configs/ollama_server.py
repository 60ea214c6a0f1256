"""A fake Ollama server with the endpoints that the service queries."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def ollama_server(answers: dict[str, Any]) -> Iterator[str]:
    """Serve `answers` by path (a str as it is, else as JSON; 404 if missing) and yield the base URL, ending in /v1."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path in answers
            answer = answers.get(self.path, {"error": "not found"})
            body = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
