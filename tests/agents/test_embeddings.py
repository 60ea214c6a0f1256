"""Embeddings from a server: returned in the order of the texts, and rejected if invalid."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agents.chat_models.openai_client import embed_texts
from agents.errors import ModelError
from agents.types import ModelEndpoint

FINE = '{"index": 1, "embedding": [1, 2]}'


class Answers(ThreadingHTTPServer):
    body = ""


class Handler(BaseHTTPRequestHandler):
    server: Answers

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = self.server.body.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    with Answers(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def embed(answers: Answers, body: str) -> list[list[float]]:
    answers.body = body
    return embed_texts(ModelEndpoint("m", f"http://127.0.0.1:{answers.server_port}/v1"), ["a", "b"])


@pytest.mark.parametrize(
    "rows",
    [
        '{"index": 1, "embedding": [3]}, {"index": 0, "embedding": [0.5]}',
        '{"embedding": [0.5]}, {"embedding": [3]}',
    ],
)
def test_vectors_are_returned_in_the_order_of_the_texts(answers: Answers, rows: str) -> None:
    assert embed(answers, f'{{"data": [{rows}]}}') == [[0.5], [3.0]]


@pytest.mark.parametrize(
    "body",
    [
        *(
            f'{{"data": [{{"index": 0, "embedding": {vector}}}, {FINE}]}}'
            for vector in (
                "[NaN, 1]", "[1e999, 1]", "[1e308, 1]", f"[{'9' * 400}, 1]", '["a", 1]', '"AAAA"', "null", "[]",
                "[[1, 2]]", "[1]", "{}",
            )
        ),
        f'{{"data": [{FINE}, {FINE}]}}',
        f'{{"data": [{FINE}]}}',
        '{"data": {"a": 1}}', '{"data": null}', '{"data": [1, 2]}', "[]", "null", "<html>", "", "[" * 5_000,
    ],
)  # fmt: skip
def test_a_response_without_a_valid_vector_for_each_text_is_a_bad_response(
    answers: Answers, body: str
) -> None:
    with pytest.raises(ModelError) as caught:
        embed(answers, body)
    assert caught.value.category == "bad_response"
