"""A scripted OpenAI-compatible server on a real socket: in a thread for pytest, or as a process for black-box tests.

with ModelServer() as server:
    server.script(says("Hello"), ERRORS["server"]())
    client = AsyncOpenAI(base_url=server.base_url, api_key="any")

python -m tests.servers.openai_server --port 0 --rate 50 --tokens 200     prints its address as the first line;
GET /_requests, DELETE /_requests, POST /_script, POST /_release control it.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, Literal

from tests.servers.behaviour import Behaviour, read_behaviour
from tests.servers.frames import (
    completion_body,
    embeddings_body,
    estimate_prompt_tokens,
    split_tokens,
    stream_frames,
)
from tests.servers.http_socket import HttpConnection
from tests.servers.recording import RecordedRequest, RequestKind, is_summary_request
from tests.servers.streaming import AnswerStream
from tests.servers.waiting import PATIENCE_S

Step = Behaviour | Callable[[RecordedRequest], Behaviour]


def summarise_in_short(request: RecordedRequest) -> Behaviour:
    """Return a summary with an identifier or number from the request: summaries without one are rejected."""
    told = str(request.messages[-1].get("content", ""))
    fact = re.search(r"[A-Z]+-\d+", told) or re.search(
        r"(?<![\d-])\d{1,9}(?![\d-])", told.partition("User: ")[2]
    )
    return Behaviour(text=f"Summary: what was said before, in short. {fact[0] if fact else ''}".strip())


class ModelServer:
    """`script` queues answers; when the queue is empty, `default` answers. One queue for chat, one for summaries."""

    def __init__(
        self,
        *,
        port: int = 0,
        models: Iterable[str | Mapping[str, Any]] = ("test-model",),
        default: Step = Behaviour(),
        summary_default: Step = summarise_in_short,
        is_summary: Callable[[Mapping[str, Any]], bool] = is_summary_request,
        window: int = 0,
        api_key: str = "",
    ) -> None:
        self.models = list(models)
        self.defaults: dict[str, Step] = {"chat": default, "summary": summary_default}
        self.is_summary = is_summary
        self.window = window
        self.api_key = api_key
        self.requests: list[RecordedRequest] = []
        self._queues: dict[str, deque[Step]] = {"chat": deque(), "summary": deque()}
        self._port = port
        self._changed = threading.Condition()
        self._streams: set[AnswerStream] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._connections: set[HttpConnection] = set()

    # --- scripting and waiting

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    def script(self, *steps: Step, kind: Literal["chat", "summary"] = "chat") -> None:
        self._queues[kind].extend(steps)

    def clear(self) -> None:
        self.requests.clear()
        for queue in self._queues.values():
            queue.clear()

    def requests_of(self, kind: RequestKind) -> list[RecordedRequest]:
        return [request for request in list(self.requests) if request.kind == kind]

    def wait_until(self, is_true: Callable[[ModelServer], bool], timeout_s: float = PATIENCE_S) -> None:
        """Wait until the condition holds. Check it whenever a request arrives, gets its first token, or ends. Raise
        TimeoutError after `timeout_s`."""
        with self._changed:
            if not self._changed.wait_for(lambda: is_true(self), timeout_s):
                raise TimeoutError(f"not so after {timeout_s} s; {len(self.requests)} requests came")

    def release(self) -> None:
        """Resume every held answer."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._release_streams)

    def _release_streams(self) -> None:
        for stream in list(self._streams):
            stream.release()

    # --- starting and stopping

    async def serve(self) -> asyncio.Server:
        self._loop = asyncio.get_running_loop()
        server = await self._loop.create_server(self._connect, "127.0.0.1", self._port, backlog=1024)
        self._port = server.sockets[0].getsockname()[1]
        return server

    def __enter__(self) -> ModelServer:
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(started)), daemon=True)
        self._thread.start()
        if not started.wait(PATIENCE_S):
            raise RuntimeError("the model server did not start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join(PATIENCE_S)

    async def _run(self, started: threading.Event) -> None:
        self._stopping = asyncio.Event()
        server = await self.serve()
        started.set()
        await self._stopping.wait()
        server.close()
        for connection in list(self._connections):
            connection.cut()

    # --- answering

    def _connect(self) -> HttpConnection:
        connection = HttpConnection(self._answer, self._connections.discard)
        self._connections.add(connection)
        return connection

    def _answer(
        self, connection: HttpConnection, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> None:
        if path.startswith("/_"):
            self._steer(connection, method, path, body)
            return
        data = json.loads(body) if body else {}
        request = RecordedRequest(
            path,
            self._kind_of(path, data),
            data,
            headers,
            {"arrived": time.time()},
            hashlib.sha256(body).hexdigest(),
        )
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        if self.api_key and headers.get("authorization") != f"Bearer {self.api_key}":
            connection.send_json(
                {"error": {"message": "Incorrect API key provided.", "code": "invalid_api_key"}}, 401
            )
        elif request.kind == "models":
            connection.send_json({"object": "list", "data": [self._describe(model) for model in self.models]})
        elif request.kind == "embeddings":
            connection.send_json(embeddings_body(data))
        elif path.endswith("/chat/completions"):
            self._complete(connection, request)
        else:
            connection.send_json({"error": {"message": f"Not Found: {path}"}}, 404)

    def _kind_of(self, path: str, body: Mapping[str, Any]) -> RequestKind:
        if path.endswith("/models"):
            return "models"
        if path.endswith("/embeddings"):
            return "embeddings"
        if not path.endswith("/chat/completions"):
            return "other"
        return "summary" if self.is_summary(body) else "chat"

    @staticmethod
    def _describe(model: str | Mapping[str, Any]) -> Mapping[str, Any]:
        plain = {"object": "model", "created": 1_790_000_000, "owned_by": "test"}
        return plain | ({"id": model} if isinstance(model, str) else dict(model))

    def _next_step(self, request: RecordedRequest) -> Behaviour:
        queue = self._queues[request.kind]
        step = queue.popleft() if queue else self.defaults[request.kind]
        return step(request) if callable(step) else step

    def _complete(self, connection: HttpConnection, request: RecordedRequest) -> None:
        behaviour = self._check_window(request) or self._next_step(request)
        field_name = behaviour.error_if_field
        if field_name and field_name in request.body:
            message = f"Unsupported parameter: '{field_name}' is not supported with this model."
            error = {"message": message, "type": "invalid_request_error", "param": field_name}
            connection.send_json({"error": error | {"code": "unsupported_parameter"}}, 400)
        elif behaviour.fault == "refuse":
            connection.cut()
        elif behaviour.status != 200:
            self._send_error(connection, behaviour)
        elif behaviour.fault in ("html", "empty"):
            body = b"<!doctype html><html><body>Welcome</body></html>" if behaviour.fault == "html" else b""
            connection.send(200, body, "text/html" if body else "text/event-stream")
        elif request.body.get("stream"):
            self._stream(connection, request, behaviour)
        else:
            wait_s = behaviour.delay_s
            wait_s += len(split_tokens(behaviour.text or "")) / behaviour.rate if behaviour.rate else 0
            body_sent = completion_body(behaviour, request.body)
            asyncio.get_running_loop().call_later(wait_s, connection.send_json, body_sent)

    def _check_window(self, request: RecordedRequest) -> Behaviour | None:
        wanted = estimate_prompt_tokens(request.body)
        if not self.window or wanted <= self.window:
            return None
        message = (
            f"This model's maximum context length is {self.window} tokens. However, your messages resulted in "
            f"{wanted} tokens. Please reduce the length of the messages."
        )
        error = {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}
        return Behaviour(status=400, error={"error": error})

    @staticmethod
    def _send_error(connection: HttpConnection, behaviour: Behaviour) -> None:
        headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after is not None else {}
        if isinstance(behaviour.error, str):
            kind = "text/html" if behaviour.error.lstrip().startswith("<") else "text/plain"
            connection.send(behaviour.status, behaviour.error.encode(), kind, headers)
        else:
            connection.send_json(behaviour.error or {}, behaviour.status, headers)

    def _stream(self, connection: HttpConnection, request: RecordedRequest, behaviour: Behaviour) -> None:
        def note(name: str) -> None:
            with self._changed:
                request.times.setdefault(name, time.time())
                if name in ("finished", "lost"):
                    self._streams.discard(stream)
                self._changed.notify_all()

        stream = AnswerStream(connection, behaviour, stream_frames(behaviour, request.body), note)
        self._streams.add(stream)
        stream.start()

    # --- controlling the server over HTTP

    def _steer(self, connection: HttpConnection, method: str, path: str, body: bytes) -> None:
        if path == "/_requests" and method == "GET":
            connection.send_json({"requests": [asdict(request) for request in self.requests]})
            return
        try:
            self._obey(method, path, body)
        except (ValueError, TypeError) as error:
            connection.send_json({"error": str(error)}, 400)
        else:
            connection.send_json({"ok": True})

    def _obey(self, method: str, path: str, body: bytes) -> None:
        if path == "/_requests" and method == "DELETE":
            self.clear()
        elif path == "/_release":
            self._release_streams()
        elif path == "/_script" and method == "POST":
            self._read_script(json.loads(body))
        else:
            raise ValueError(f"no such command: {method} {path}")

    def _read_script(self, script: dict[str, Any]) -> None:
        """Read `{chat: [...], summary: [...], default: {...}, summary_default: {...}, window, models, api_key}`. Raise
        ValueError for any other field."""
        for kind in ("chat", "summary"):
            self._queues[kind].extend(read_behaviour(item) for item in script.pop(kind, ()))
        for name, kind in (("default", "chat"), ("summary_default", "summary")):
            if name in script:
                self.defaults[kind] = read_behaviour(script.pop(name))
        self.window = script.pop("window", self.window)
        self.models = script.pop("models", self.models)
        self.api_key = script.pop("api_key", self.api_key)
        if script:
            raise ValueError(f"unknown script fields: {', '.join(sorted(script))}")


def _read_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A scripted OpenAI-compatible server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0, help="tokens a second; 0: as fast as possible")
    parser.add_argument("--tokens", type=int, default=20)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before the first token")
    parser.add_argument("--text", default=None)
    parser.add_argument("--window", type=int, default=0, help="refuse larger prompts; 0: take all")
    parser.add_argument("--model", action="append", default=None)
    parser.add_argument("--api-key", default="")
    return parser.parse_args(argv)


async def _serve_for_ever(server: ModelServer) -> None:
    listener = await server.serve()
    print(server.url, flush=True)
    await listener.serve_forever()


def main(argv: list[str]) -> None:
    asked = _read_arguments(argv)
    answer = Behaviour(text=asked.text, tokens=asked.tokens, rate=asked.rate, delay_s=asked.delay)
    models = asked.model or ["test-model"]
    server = ModelServer(
        port=asked.port, models=models, default=answer, window=asked.window, api_key=asked.api_key
    )
    try:
        asyncio.run(_serve_for_ever(server))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
