"""Users streaming at once through the socket, against the same load straight at the model server.

python -m benchmarks.streaming [--users 200] [--rate 50] [--tokens 1000]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from websockets.asyncio.client import connect

from benchmarks.stage import cpu_seconds, model_server, percentile, running_service


@dataclass
class Load:
    """What one client process saw. Times are wall-clock seconds."""

    tokens: int = 0
    errors: list[str] = field(default_factory=list)
    first: dict[str, float] = field(default_factory=dict)
    started: float = 0.0
    ended: float = 0.0

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / (self.ended - self.started)


async def read_socket(load: Load, ws_url: str, token: str, conversation: str, number: int) -> None:
    """One user: sends, reads to the end, compares what came with what was stored."""
    headers = {"Authorization": f"Bearer {token}"}
    async with connect(ws_url, additional_headers=headers, compression=None, max_size=None) as socket:
        await socket.send(json.dumps({"type": "subscribe", "conversation_id": conversation, "after_seq": 0}))
        send = {"type": "message.send", "client_id": f"load-{number}", "conversation_id": conversation}
        await socket.send(json.dumps({**send, "content": f"load-{number}"}))
        shown = ""
        async for raw in socket:
            event = json.loads(raw)
            if event["type"] == "text.delta":
                load.first.setdefault(f"load-{number}", time.time())
                if event["offset"] != len(shown):
                    load.errors.append(f"{number}: a delta at {event['offset']} where {len(shown)} was shown")
                shown += event["text"]
            elif event["type"] == "message.completed" and event["message"]["content"] != shown:
                load.errors.append(f"{number}: what was shown is not what was stored")
            elif event["type"] == "error":
                load.errors.append(f"{number}: {event['message']}")
            elif event["type"] == "run.finished":
                if event["status"] != "complete":
                    load.errors.append(f"{number}: {event['status']} {event.get('error')}")
                load.tokens += len(shown.split())
                return


async def read_model(load: Load, host: str, port: int, number: int) -> None:
    """The same straight at the model server, over a plain socket, so that the client costs as little as it can."""
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps(
        {"model": "test-model", "stream": True, "messages": [{"role": "user", "content": f"load-{number}"}]}
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    while data := await reader.read(65536):
        load.tokens += data.count(b'"content":')
        if b"[DONE]" in data:
            break
    writer.close()


async def _gather(load: Load, users: Sequence[Callable[[], Awaitable[None]]], ramp_s: float) -> Load:
    async def one(number: int, user: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(ramp_s * number / len(users))
        try:
            await user()
        except Exception as error:
            load.errors.append(f"{number}: {type(error).__name__} {error}")

    load.started = time.time()
    await asyncio.gather(*(one(number, user) for number, user in enumerate(users)))
    load.ended = time.time()
    return load


def load_service(ws_url: str, people: list[tuple[str, str]], ramp_s: float) -> Load:
    load = Load()
    users = [
        lambda token=token, conversation=conversation, number=number: read_socket(
            load, ws_url, token, conversation, number
        )
        for number, (token, conversation) in enumerate(people)
    ]
    return asyncio.run(_gather(load, users, ramp_s))


def load_model(host: str, port: int, users: int, ramp_s: float) -> Load:
    load = Load()
    jobs = [lambda number=number: read_model(load, host, port, number) for number in range(users)]
    return asyncio.run(_gather(load, jobs, ramp_s))


def measure(users: int, rate: int, tokens: int, env: dict[str, str]) -> None:
    ramp_s = 1.0 if users >= 50 else 0.2
    with (
        model_server("--rate", str(rate), "--tokens", str(tokens)) as model,
        ProcessPoolExecutor(1) as client,
    ):
        host, port = model.url.removeprefix("http://").split(":")
        straight = client.submit(load_model, host, int(port), users, ramp_s).result()
        model.forget_requests()
        with running_service(model.url, people=users, **env) as (service, people):
            assert service.process is not None
            cpu_before = cpu_seconds(service.process.pid)
            through = client.submit(load_service, service.ws_url, people, ramp_s).result()
            cpu_s = cpu_seconds(service.process.pid) - cpu_before
        lags = first_delta_lags(model.requests(), through)
    print(f"{users} users, {rate} tokens/s each, {tokens} tokens an answer")
    print(f"  straight at the model server  {straight.tokens_per_s:9.0f} tokens/s")
    print(f"  through the service           {through.tokens_per_s:9.0f} tokens/s")
    print(f"  ratio                         {through.tokens_per_s / straight.tokens_per_s:9.2f}")
    print(f"  CPU of the service            {cpu_s / through.tokens * 1000:9.3f} s per 1,000 tokens")
    p95, median = (percentile(lags, share) * 1000 for share in (0.95, 0.5))
    print(f"  first delta after first token {p95:9.1f} ms (p95; median {median:.1f})")
    print(f"  errors                        {len(through.errors):9d} {through.errors[:3]}")


def first_delta_lags(requests: list[dict[str, object]], load: Load) -> list[float]:
    """From the model's first token to the client's first delta, matched by the question."""
    lags = []
    for request in requests:
        if request["kind"] != "chat":
            continue
        question = request["body"]["messages"][-1]["content"]  # type: ignore[index]
        seen = load.first.get(question.strip())
        times = request["times"]
        if seen is not None and "first_token" in times:  # type: ignore[operator]
            lags.append(seen - times["first_token"])  # type: ignore[index]
    return lags or [float("nan")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=1000)
    arguments = parser.parse_args()
    measure(arguments.users, arguments.rate, arguments.tokens, {})
    measure(20, arguments.rate, 100, {})


if __name__ == "__main__":
    main()
