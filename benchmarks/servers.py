"""The same ASGI application behind our server on daphne, behind uvicorn and behind granian.

python -m benchmarks.servers [--seconds 3] [--sockets 100] [--frames 200] [--rounds 3]

HTTP requests are Django's `GET /healthz`. A socket of the application below sends frames like text deltas, 50 per
second. Servers that are not installed are skipped, because the service needs only daphne. Each has one worker.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.stage import CLOCK_TICKS, percentile
from tests.environment import ROOT, clean_environment

RATE = 50
CLIENTS = 16
FRAME = '{"type":"text.delta","seq":1234,"run_id":"01a200ef-21de-798c-a040-73104253dc3f","offset":4321,"text":" word"}'
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HANDSHAKE = (
    b"GET /ws/%d HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
START = bytes([0x81, 0x80 | 2, 0, 0, 0, 0]) + b"go"
NEEDS = {"daphne": "daphne", "uvicorn": "uvicorn", "uvicorn + uvloop": "uvloop", "granian": "granian"}


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await stream(int(scope["path"].rpartition("/")[2]), receive, send)
    elif scope["type"] == "http":
        await django_application()(scope, receive, send)


@cache
def django_application() -> Any:
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


async def stream(frames: int, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    await receive()
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(frames):
        await send({"type": "websocket.send", "text": FRAME})
        await asyncio.sleep(began + (number + 1) / RATE - loop.time())
    await send({"type": "websocket.close", "code": 1000})


def serve(name: str, port: int) -> None:
    """Run one of the servers until the process is killed."""
    if name == "daphne":
        from chatapp.operations.serving.listener import open_listener
        from chatapp.operations.serving.server import Server
        from chatapp.operations.serving.server_limits import Limits

        async def nobody(scope: Any) -> None:
            return None

        limits = Limits(request_bytes=2**20, frame_bytes=2**20, connections_per_address=10_000)
        Server(application, open_listener("127.0.0.1", port), limits=limits, authenticate=nobody).run()
    elif name == "granian":
        from granian import Granian

        target = "benchmarks.servers:application"
        Granian(target, address="127.0.0.1", port=port, interface="asgi", log_enabled=False).serve()
    else:
        import uvicorn

        loop = "uvloop" if name.endswith("uvloop") else "asyncio"
        uvicorn.run(application, port=port, loop=loop, log_level="critical", access_log=False, lifespan="off")


@dataclass(frozen=True, slots=True)
class Round:
    requests_per_s: float
    cpu_ms_per_request: float
    first_frame_ms: float
    cpu_s_per_1000_frames: float
    memory_mb: float


@contextmanager
def running(name: str) -> Iterator[tuple[int, int]]:
    """Yield (process id, port)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.servers", "--serve", name, "--port", str(port)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{name} does not answer")
            time.sleep(0.1)
        yield process.pid, port
    finally:
        for pid in reversed(family(process.pid)):
            os.kill(pid, 9)
        process.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
            client.sendall(REQUEST)
            return client.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def family(pid: int) -> list[int]:
    """Return the ids of the process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that ended meanwhile
            for child in (task / "children").read_text().split():
                found += family(int(child))
    return found


def cpu_s(pid: int) -> float:
    fields = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in family(pid)]
    return sum(int(each[11]) + int(each[12]) for each in fields) / CLOCK_TICKS


def memory_mb(pid: int) -> float:
    pages = [int(Path(f"/proc/{each}/statm").read_text().split()[1]) for each in family(pid)]
    return sum(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask_for(port: int, seconds: float) -> float:
    """Return the requests per second over persistent connections."""

    async def one(deadline: float) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while time.monotonic() < deadline:
            writer.write(REQUEST)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
            count += 1
        writer.close()
        return count

    async def everyone() -> float:
        deadline = time.monotonic() + seconds
        return sum(await asyncio.gather(*(one(deadline) for _ in range(CLIENTS)))) / seconds

    return asyncio.run(everyone())


def read_streams(port: int, sockets: int, frames: int) -> list[float]:
    """Return the seconds from each socket's start to its first frame. Raise AssertionError if frames are missing."""

    async def one(number: int) -> float:
        await asyncio.sleep(number / sockets)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HANDSHAKE % frames)
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        writer.write(START)
        began = time.monotonic()
        data = await reader.read(65_536)
        first_s = time.monotonic() - began
        count = 0
        while data and count < frames:
            count += data.count(b"text.delta")
            if count < frames:
                data = await reader.read(65_536)
        assert count == frames, f"{count} of {frames} frames"
        writer.close()
        return first_s

    async def everyone() -> list[float]:
        return await asyncio.gather(*(one(number) for number in range(sockets)))

    return asyncio.run(everyone())


def measure(name: str, seconds: float, sockets: int, frames: int, client: ProcessPoolExecutor) -> Round:
    with running(name) as (pid, port):
        before = cpu_s(pid)
        rate = client.submit(ask_for, port, seconds).result()
        between = cpu_s(pid)
        firsts = client.submit(read_streams, port, sockets, frames).result()
        after = cpu_s(pid)
        return Round(
            rate,
            (between - before) / (rate * seconds) * 1000,
            percentile(firsts, 0.5) * 1000,
            (after - between) / (sockets * frames) * 1000,
            memory_mb(pid),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--sockets", type=int, default=100)
    parser.add_argument("--frames", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve")
    parser.add_argument("--port", type=int)
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve, chosen.port)
        return
    clean_environment()
    os.environ["DJANGO_SETTINGS_MODULE"] = "chatapp.settings"
    names = [name for name, module in NEEDS.items() if find_spec(module)]
    rounds: dict[str, list[Round]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1) as client:
        os.environ.update(DATA_DIR=folder, LOG_LEVEL="ERROR")
        for _ in range(chosen.rounds):
            for name in names:
                rounds[name].append(measure(name, chosen.seconds, chosen.sockets, chosen.frames, client))
    columns = ("requests/s", "CPU ms each", "first frame ms", "CPU s/1,000 frames", "MB")
    print(" " * 18 + "".join(f"{column:>22}" for column in columns))
    for name in names:
        print(f"{name:18}" + _row(rounds[name], rounds["daphne"]))


def _row(rounds: list[Round], ours: list[Round]) -> str:
    """Return the medians, each with its ratio to ours."""
    cells = []
    for field in Round.__dataclass_fields__:
        value, our = (statistics.median(getattr(each, field) for each in kind) for kind in (rounds, ours))
        cells.append(f"{f'{value:.3g} ({value / our:.2f})':>22}")
    return "".join(cells)


if __name__ == "__main__":
    main()
