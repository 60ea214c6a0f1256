"""Users who send at once, spread over time, and alone, over sockets. Each load also goes directly to the model server.

python -m benchmarks.streaming [--users 200] [--rate 50] [--tokens 100] [--rounds 3] [--spread 30] [--webs N]

`--webs N`: PostgreSQL, Redis, N web processes and a worker instead of one embedded process on SQLite. The loads
through the service and directly to the model server alternate, so that other work on the machine slows down both.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from benchmarks.load_client import Ask, Load, UserSocket, ask_model, offer, open_socket
from benchmarks.stage import Deployment, deployment, model_server, percentile

SPREAD_S = 15.0
ALONE_TOKENS = 4_000
"""The tokens of all answers to a single user: 40 answers of 100 tokens, of which the slowest two are 5 %."""
REST_S = 3.0
"""How long CPU time is counted after a load, to include the work that the load leaves behind."""


@dataclass
class Measured:
    """The same load through the service and directly to the model server, in rounds."""

    through: list[Load] = field(default_factory=list)
    straight: list[Load] = field(default_factory=list)
    cpu_s: float = 0.0

    @property
    def share(self) -> float:
        """The tokens per second through the service, as a share of those directly from the model server."""
        return self.tokens_per_s(self.through) / self.tokens_per_s(self.straight)

    @property
    def cpu_per_thousand(self) -> float:
        return self.cpu_s / max(1, sum(load.tokens for load in self.through)) * 1000

    @property
    def errors(self) -> list[str]:
        return [error for load in (*self.through, *self.straight) for error in load.errors]

    def tokens_per_s(self, loads: Sequence[Load]) -> float:
        return sum(load.tokens for load in loads) / sum(load.ended - load.started for load in loads)

    def first_above_ms(self, share: float) -> float:
        """Return a percentile of the time to the first text, minus the median of the model server's own."""
        own = percentile([after for load in self.straight for after in load.first_after], 0.5)
        seen = [after for load in self.through for after in load.first_after]
        return (percentile(seen, share) - own) * 1000 if seen else float("nan")


async def measure(
    service: Deployment, through: Sequence[Ask], straight: Sequence[Ask], over_s: float, rounds: int
) -> Measured:
    measured = Measured()
    for _ in range(rounds):
        measured.straight.append(await offer(straight, over_s))
        before = service.cpu_seconds()
        measured.through.append(await offer(through, over_s))
        await asyncio.sleep(REST_S)
        measured.cpu_s += service.cpu_seconds() - before
    return measured


async def measure_all(
    service: Deployment, people: list[tuple[str, str]], model_url: str, asked: argparse.Namespace
) -> dict[str, Measured]:
    host, port = model_url.removeprefix("http://").split(":")
    model = partial(ask_model, host=host, port=int(port))
    sockets = [
        await open_socket("127.0.0.1", service.webs[number % len(service.webs)].port, token, conversation)
        for number, (token, conversation) in enumerate(people)
    ]
    await sockets[0].ask(Load())  # the first answer of a process loads modules
    all_at_once = [socket.ask for socket in sockets]
    found = {
        "at once": await measure(service, all_at_once, [model] * len(sockets), 1.0, asked.rounds),
        "alone": await measure(
            service, [partial(in_turn, sockets[0], ALONE_TOKENS // asked.tokens)], [model], 0.0, 1
        ),
    }
    if asked.spread:
        count = int(asked.spread * SPREAD_S)
        idle: asyncio.Queue[UserSocket] = asyncio.Queue()
        for socket in sockets:
            idle.put_nowait(socket)
        found["spread"] = await measure(
            service, [partial(ask_idle, idle)] * count, [model] * count, SPREAD_S, 1
        )
    for socket in sockets:
        socket.close()
    return found


async def in_turn(socket: UserSocket, turns: int, load: Load) -> None:
    for _ in range(turns):
        await socket.ask(load)


async def ask_idle(idle: asyncio.Queue[UserSocket], load: Load) -> None:
    """Send as an idle user. If all users are waiting for answers, the service is behind, and the send is late, too."""
    socket = await idle.get()
    try:
        await socket.ask(load)
    finally:
        idle.put_nowait(socket)


def print_table(found: dict[str, Measured], service: Deployment, asked: argparse.Namespace) -> None:
    at_once, alone = found["at once"], found["alone"]
    print(f"{asked.users} users, {asked.tokens} tokens an answer at {asked.rate} a second, {service.name}")
    rows = [
        ("all within one second: straight, tokens/s", f"{at_once.tokens_per_s(at_once.straight):.0f}"),
        ("  through the service, tokens/s", f"{at_once.tokens_per_s(at_once.through):.0f}"),
        ("  share of straight", f"{at_once.share:.0%}"),
        ("  first token above the model's own, p50", f"{at_once.first_above_ms(0.5):.0f} ms"),
        ("  p95", f"{at_once.first_above_ms(0.95):.0f} ms"),
        ("  CPU of the service per 1,000 tokens", f"{at_once.cpu_per_thousand:.3f} s"),
    ]
    if spread := found.get("spread"):
        rows += [
            (
                f"{asked.spread} sends a second: first token above, p50",
                f"{spread.first_above_ms(0.5):.0f} ms",
            ),
            ("  p95", f"{spread.first_above_ms(0.95):.0f} ms"),
            ("  CPU of the service per 1,000 tokens", f"{spread.cpu_per_thousand:.3f} s"),
        ]
    errors = [error for measured in found.values() for error in measured.errors]
    rows += [
        ("one user alone: first token above, p50", f"{alone.first_above_ms(0.5):.0f} ms"),
        ("  p95", f"{alone.first_above_ms(0.95):.0f} ms"),
        ("peak memory of the largest process", f"{service.peak_mb():.0f} MB"),
        ("errors, gaps, differences to what was stored", f"{len(errors)} {errors[:3] if errors else ''}"),
    ]
    for name, value in rows:
        print(f"  {name:48s} {value:>12s}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--rate", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=0, help="of an answer; without it 100, then 1,000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--spread", type=int, default=30, help="sends a second; 0: not measured")
    parser.add_argument("--webs", type=int, default=0)
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no process is left behind
    for tokens in (asked.tokens,) if asked.tokens else (100, 1_000):
        asked.tokens = tokens
        if tokens > 500:
            asked.spread, asked.rounds = 0, 1
        with (
            model_server("--rate", str(asked.rate), "--tokens", str(tokens)) as model,
            deployment(model.url, people=asked.users, webs=asked.webs) as (service, people),
        ):
            print_table(asyncio.run(measure_all(service, people, model.url, asked)), service, asked)
    subprocess.run([sys.executable, "-m", "benchmarks.turn"], check=True)


if __name__ == "__main__":
    main()
