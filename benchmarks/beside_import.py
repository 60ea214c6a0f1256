"""Another user's turns before, during and after a large import, on one embedded server with SQLite.

python -m benchmarks.beside_import [--messages 100000] [--chat 40]

The turns run one after another, each with 20 tokens at 50 per second. An import yields to answers, so it takes longer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import httpx2

from benchmarks.api import new_chat
from benchmarks.load_client import Load, UserSocket, open_socket
from benchmarks.stage import model_server, percentile, running_service
from tests.servers.service import Service

TURNS_ALONE = 12
INDEXED_S = 15.0


async def measure(service: Service, importer: str, other: tuple[str, str], export: bytes) -> None:
    """Print the turns of each phase, and how long the import took."""
    host, port = service.url.removeprefix("http://").split(":")
    socket = await open_socket(host, int(port), *other)
    await _turns(socket, "before", lambda load: len(load.first_after) < TURNS_ALONE)
    headers = {"Authorization": f"Bearer {importer}"}
    async with httpx2.AsyncClient(base_url=f"{service.url}/api/v1", headers=headers, timeout=600) as client:
        began = time.perf_counter()
        answer = await client.post("/imports", files={"file": ("export.json", export)})
        found = answer.raise_for_status().json()
        beside = asyncio.create_task(
            _turns(socket, "beside", lambda _: found["state"] in ("waiting", "running"))
        )
        while found["state"] in ("waiting", "running"):
            await asyncio.sleep(1)
            found = (await client.get(f"/imports/{found['id']}")).json()
        took = time.perf_counter() - began
        await beside
    ends_at = time.perf_counter() + INDEXED_S
    await _turns(socket, "while the index follows", lambda _: time.perf_counter() < ends_at)
    print(f"{found['state']}: {found['messages']:,} messages in {took:.0f} s, the upload included")
    socket.close()


async def _turns(socket: UserSocket, when: str, goes_on: Callable[[Load], bool]) -> None:
    load = Load(started=time.perf_counter())
    while goes_on(load):
        await socket.ask(load)
    first = [after * 1000 for after in load.first_after]
    print(
        f"{when}: {len(first)} turns, first token p50 {percentile(first, 0.5):.0f} ms,"
        f" p95 {percentile(first, 0.95):.0f} ms, longest {max(first):.0f} ms; errors {load.errors}",
        flush=True,
    )


def export_of(messages: int, length: int) -> bytes:
    chats: list[dict[str, Any]] = [new_chat(number, length) for number in range(messages // length)]
    return json.dumps(chats).encode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--chat", type=int, default=40, help="messages of each conversation")
    chosen = parser.parse_args()
    with (
        model_server("--rate", "50", "--tokens", "20") as model,
        running_service(model.url, people=2) as (service, [(importer, _), other]),
    ):
        asyncio.run(measure(service, importer, other, export_of(chosen.messages, chosen.chat)))
