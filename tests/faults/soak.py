"""The long form: users chat for an hour while something breaks every minute, then the checker runs.

    make soak DURATION=600 USERS=10 EVERY=30 DATABASE=sqlite

Prints the outages and problems. The exit code is 1 if there are problems. The logs stay in the printed folder.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.environment import clean_environment
from tests.faults.installations import Ground, embedded, faulty_model, production
from tests.faults.journal import Journal
from tests.faults.model_faults import MODEL_FAULTS
from tests.faults.running import run_through
from tests.faults.users import User
from tests.servers.made_once import start_migrated_postgres
from tests.servers.openai_server import ModelServer

ORDINARY_SHARE = 0.6
"""The share of questions without a model fault."""


@dataclass(frozen=True)
class Wanted:
    duration_s: float
    users: int
    every_s: float
    database: str
    seed: int

    @classmethod
    def read(cls) -> Wanted:
        def number(name: str, default: float) -> float:
            return float(os.environ.get(name) or default)

        return cls(
            number("DURATION", 3600),
            int(number("USERS", 20)),
            number("EVERY", 60),
            os.environ.get("DATABASE") or "postgres",
            int(number("SEED", 1)),
        )


def endless_faults(seed: int) -> Iterator[str]:
    chooser = random.Random(seed)
    names = list(MODEL_FAULTS)
    while True:
        yield "none" if chooser.random() < ORDINARY_SHARE else chooser.choice(names)


def soak(ground: Ground, wanted: Wanted) -> list[str]:
    """Run users and outages, print a report and return all problems."""
    journal, done = Journal(), Counter[str]()

    def break_things(users: Sequence[User]) -> None:
        for name, outage in _outages(ground, wanted, users):
            print(time.strftime("%H:%M:%S"), name, flush=True)
            outage()
            done[name] += 1

    problems = run_through(ground, journal, lambda user: endless_faults(wanted.seed + user), break_things)
    _report(ground, journal, done, problems)
    return problems


def _outages(
    ground: Ground, wanted: Wanted, users: Sequence[User]
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield every kind of outage in turn, each round in another order, until the time is over."""
    end = time.monotonic() + wanted.duration_s
    chooser, waiting = random.Random(wanted.seed), list[str]()
    kinds = ground.outages.kinds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(wanted.every_s, left))
        if time.monotonic() >= end or not any(user.is_alive() for user in users):
            return
        if not waiting:
            waiting = chooser.sample(list(kinds), len(kinds))
        name = waiting.pop()
        yield name, kinds[name]


def _report(ground: Ground, journal: Journal, done: Counter[str], problems: list[str]) -> None:
    acknowledged = sum(one.is_acknowledged for one in journal.sent)
    print(f"\n{len(journal.sent)} messages sent, {acknowledged} acknowledged; outages: {sum(done.values())}")
    for name, times in sorted(done.items()):
        print(f"  {times:4} {name}")
    for name, times in sorted(journal.counts.items()):
        print(f"  {times:6} {name}")
    print(f"  slowest word that the database is away: {journal.slowest_refusal_s:.1f} s")
    for process in ground.installation.processes:
        size = process.log.stat().st_size
        print(f"  {process.log}: {size:,} bytes, {process.output().count('Traceback')} traces")
    print(f"\n{len(problems)} problems")
    for problem in problems:
        print(f"- {problem}")


def _ground(stack: ExitStack, wanted: Wanted, folder: Path, model: ModelServer) -> Ground:
    if wanted.database == "sqlite":
        return stack.enter_context(embedded(folder / "embedded", model, wanted.users))
    postgres = start_migrated_postgres()
    stack.callback(postgres.stop)
    return stack.enter_context(production(folder / "production", model, postgres, wanted.users))


def main() -> int:
    clean_environment()
    wanted = Wanted.read()
    folder = Path(tempfile.mkdtemp(prefix="palimpsest-soak-"))
    print(f"{wanted}\nLogs and data: {folder}", flush=True)
    os.environ["STATIC_ROOT"] = str(folder / "static")
    (folder / "static").mkdir()
    with ExitStack() as stack:
        model = stack.enter_context(faulty_model())
        return 1 if soak(_ground(stack, wanted, folder, model), wanted) else 0


if __name__ == "__main__":
    sys.exit(main())
