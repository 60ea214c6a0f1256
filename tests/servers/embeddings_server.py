"""An OpenAI-compatible embeddings endpoint on a real socket. Its vectors know only the synonyms in `concepts`.

A text's vector is the sum of its words' vectors. A word's vector is pseudo-random, seeded with its concept or else the
word itself, so that texts with common words or concepts are near each other.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

DIMENSIONS = 96


@cache
def _draw(word: str, dimensions: int) -> list[float]:
    dice = Random(hashlib.sha256(word.encode()).digest())
    return [dice.gauss(0, 1) for _ in range(dimensions)]


class EmbeddingsServer:
    """`requests` holds the bodies received. `is_down` makes requests fail, a text in `refused` fails its request."""

    def __init__(self, concepts: Mapping[str, Sequence[str]], api_key: str = "") -> None:
        self.concept_of = {word: name for name, words in concepts.items() for word in words}
        self.api_key = api_key
        self.requests: list[dict[str, Any]] = []
        self.is_down = False
        self.refused: frozenset[str] = frozenset()
        self.dimensions = DIMENSIONS
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> EmbeddingsServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def vector(self, text: str) -> list[float]:
        total = [0.0] * self.dimensions
        for word in re.findall(r"\w+", text.lower()):
            drawn = _draw(self.concept_of.get(word, word), self.dimensions)
            total = [value + another for value, another in zip(total, drawn, strict=True)]
        return total

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.requests.append({"path": self.path, **body})
                allowed = not server.api_key or self.headers["authorization"] == f"Bearer {server.api_key}"
                if any(text in server.refused for text in body["input"]):
                    self.send_error(400, "a text is too long")
                    return
                if server.is_down or not allowed:
                    return self._send(503 if server.is_down else 401, {"error": {"message": "Not now."}})
                data = [
                    {"object": "embedding", "index": index, "embedding": server.vector(text)}
                    for index, text in enumerate(body["input"])
                ]
                self._send(
                    200,
                    {
                        "object": "list",
                        "model": body["model"],
                        "data": data,
                        "usage": {"prompt_tokens": 1, "total_tokens": 1},
                    },
                )

            def _send(self, status: int, shape: dict[str, Any]) -> None:
                content = json.dumps(shape).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *values: object) -> None:
                """Print nothing."""

        return Handler
