"""The time of a recall from 20,000 turns on SQLite and on PostgreSQL, side by side.

python -m benchmarks.recall_databases [FOLDER] [--turns 20000] [--questions 60]

FOLDER is the same as for `benchmarks.recall`. Each database has its own client process, and both get each question one
after the other, so that other work on the machine slows both alike. The CPU time is that of the client process. Only
the wall-clock time includes the PostgreSQL server.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import recall_speed
from benchmarks.recall import DATA
from benchmarks.recall_data import read_conversations
from benchmarks.stage import percentile, prepared_database
from tests.environment import ROOT

DATABASES = ("sqlite", "postgres")
DUE = {"sqlite": "due 15 (30)", "postgres": "due 25 (40)"}
REPEATS = 3
"""How often each question is asked. The fastest time is the most reliable, because other work only adds time."""


@dataclass(frozen=True)
class Taken:
    clock_ms: float
    cpu_ms: float


def answer_questions(database: str, folder: Path, turns: int) -> None:
    """Run a recall for each line of standard input, and print its times."""
    with prepared_database(database):
        user, conversation_id = recall_speed.user_with(read_conversations(folder / "recall_dev.json"), turns)
        recall_speed.index(conversation_id)
        recallers = {budget: recall_speed.recaller(user, budget) for budget in recall_speed.BUDGETS}
        print("ready", flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            clock, cpu = time.perf_counter(), time.process_time()
            recallers[asked["budget"]](asked["question"])
            taken = ((time.perf_counter() - clock) * 1000, (time.process_time() - cpu) * 1000)
            print(json.dumps(taken), flush=True)


@contextmanager
def _answering(database: str, folder: Path, turns: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.recall_databases", str(folder), "--turns", str(turns)]
    process = subprocess.Popen(
        [*command, "--answer", database], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.communicate()


def _ask(process: subprocess.Popen[str], question: str, budget: int) -> Taken:
    assert process.stdin is not None
    process.stdin.write(json.dumps({"question": question, "budget": budget}) + "\n")
    process.stdin.flush()
    return Taken(*json.loads(_read(process)))


def _read(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit("A process that was to answer ended.")
    return line


def measure(folder: Path, turns: int, count: int) -> None:
    conversations = read_conversations(folder / "recall_dev.json")
    every = [asked.question for history in conversations for asked in history.questions]
    questions = random.Random(1).sample(every, min(count, len(every)))
    with ExitStack() as stack:
        processes = {name: stack.enter_context(_answering(name, folder, turns)) for name in DATABASES}
        for process in processes.values():
            assert _read(process) == "ready\n"
        for budget in recall_speed.BUDGETS:
            taken: dict[str, list[list[Taken]]] = defaultdict(list)
            for question in questions:
                rounds = [
                    {name: _ask(process, question, budget) for name, process in processes.items()}
                    for _ in range(REPEATS)
                ]
                for name in DATABASES:
                    taken[name].append([each[name] for each in rounds])
            print(
                f"Recall of {budget:,} tokens from {turns:,} turns, median (p95) of {len(questions)} questions in ms"
            )
            for name in DATABASES:
                _report(name, taken[name])


def _report(name: str, taken: Sequence[Sequence[Taken]]) -> None:
    for how, chosen in (("each time", [one for many in taken for one in many]), ("the quickest of 3", None)):
        rows = chosen or [min(many, key=lambda one: one.clock_ms) for many in taken]
        clock, cpu = ([getattr(row, field) for row in rows] for field in ("clock_ms", "cpu_ms"))
        print(f"  {name:9} {how:18} clock {_middle(clock)}   CPU {_middle(cpu)}   {DUE[name]}", flush=True)


def _middle(values: Sequence[float]) -> str:
    return f"{percentile(values, 0.5):5.1f} ({percentile(values, 0.95):5.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=DATA, help=f"default: {DATA}")
    parser.add_argument("--turns", type=int, default=recall_speed.RECALLED_FROM)
    parser.add_argument("--questions", type=int, default=recall_speed.RUNS)
    parser.add_argument("--answer", choices=DATABASES, help=argparse.SUPPRESS)
    arguments: Any = parser.parse_args()
    if not arguments.folder.is_dir():
        return print(
            f"Not measured: the data is not part of this project, and {arguments.folder} is not there."
        )
    if arguments.answer:
        answer_questions(arguments.answer, arguments.folder, arguments.turns)
    else:
        measure(arguments.folder, arguments.turns, arguments.questions)


if __name__ == "__main__":
    main()
