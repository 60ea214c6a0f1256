"""The cost of the API: messages imported per second, a day of many memory entries, and lists and reads at two numbers
of rows.

python -m benchmarks.api [--database postgres] [--rows 100 100000] [--explain] [--messages 12000] [--entries 1000]
[--profile]. With 0 messages, entries or rows their measurement is skipped.

On a busy machine an import's CPU time says more than its duration, because an import pauses for other writers.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from cProfile import Profile
from functools import partial
from pathlib import Path
from pstats import Stats
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.many_rows import LISTS, Someone, selectors, store_someone
from benchmarks.stage import prepared_database, watch

ASKED = 40
FLAT = 1.5
"""How many times as slow a list may be with the most rows."""
TEXT = "Pebble {n} of chat {chat} has the code PB-{n:05d} and lies between many others. " * 4


def measure_import(folder: Path, chats: int, length: int, *, profiles: bool) -> None:
    """Print how fast a ChatGPT export is imported, and the longest transaction."""
    from chatapp.accounts.models import User
    from chatapp.features.importing.importer import Report, import_file

    user = User.objects.create_user(f"import-{length}@example.com")
    file = folder / "export.json"
    file.write_text(json.dumps([new_chat(number, length) for number in range(chats)]))
    report = Report()
    began, cpu = time.perf_counter(), time.process_time()
    profile = Profile() if profiles else None
    with watch() as watched, profile or nullcontext():
        import_file(user=user, path=file, report=report)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    held = max(one[1] for one in watched.held)
    print(
        f"import {chats} chats of {length}: {report.messages / took:,.0f} messages/s,"
        f" {report.messages / cpu:,.0f} a second of CPU; longest transaction {held:.0f} ms of CPU",
        flush=True,
    )
    if profile:
        Stats(profile).sort_stats("tottime").print_stats(25)


def new_chat(number: int, length: int) -> dict[str, Any]:
    nodes = {
        f"n{n}": {
            "id": f"n{n}",
            "parent": f"n{n - 1}" if n else None,
            "children": [],
            "message": {
                "id": f"n{n}",
                "author": {"role": ("user", "assistant")[n % 2]},
                "create_time": 1.7e9 + n,
                "content": {"content_type": "text", "parts": [TEXT.format(n=n, chat=number)]},
            },
        }
        for n in range(length)
    }
    return {"id": f"c{number}-{length}", "title": f"Chat {number}", "mapping": nodes}


def measure_day(count: int, *, profiles: bool) -> None:
    """Print the time of each step in the life of a day with `count` entries, over the API. Each entry has two sentences
    of words that no other entry uses."""
    from django.test import Client

    from chatapp.accounts.actions import create_token
    from chatapp.accounts.models import User

    chance, address = random.Random(3), "/api/v1/memory/days/2026-11-20"
    user = User.objects.create_user("day@example.com")
    _, secret = create_token(user=user, name="bench", scopes=["memory"])
    client = Client(SERVER_NAME="localhost", headers={"Authorization": f"Bearer {secret}"})

    def word() -> str:
        return "".join(chance.choice("bcdfglmnprst") + chance.choice("aeiou") for _ in range(4))

    def day_of(entries: int) -> str:
        said = (
            f"{word().title()} likes {word()} and {word()}. The {word()} is in {word()}."
            for _ in range(entries)
        )
        return "\n\n".join(f"## {at // 60 % 24:02d}:{at % 60:02d}\n\n{text}" for at, text in enumerate(said))

    def put(markdown: str) -> str:
        answer = client.put(address, {"markdown": markdown}, content_type="application/json")
        assert answer.status_code == 200, answer.content
        return str(answer.json()["markdown"])

    def shown() -> str:
        answer = client.get(address)
        return str(answer.json()["markdown"]) if answer.status_code == 200 else ""

    def reworded(markdown: str, most: int = 0) -> str:
        return re.sub(r"likes \w+", lambda _: f"likes {word()}", markdown, count=most)

    def live(entries: int) -> Iterator[tuple[str, Callable[[str], object]]]:
        yield "written", lambda _: put(day_of(entries))
        yield "read", lambda _: client.get(address)
        yield "one edited", lambda before: put(reworded(before, 1))
        yield "all edited", lambda before: put(reworded(before))
        yield "all replaced", lambda _: put(day_of(entries))
        yield "emptied, PUT", lambda _: put("")
        yield "written again", lambda _: put(day_of(entries))
        yield "emptied, DELETE", lambda _: client.delete(address)

    for _, step in live(10):  # loads the code
        step(shown())
    for name, step in live(count):
        before, profile = shown(), Profile() if profiles else None
        began, cpu = time.perf_counter(), time.process_time()
        with watch() as watched, profile or nullcontext():
            step(before)
        took, cpu = time.perf_counter() - began, time.process_time() - cpu
        held = max((one[1] for one in watched.held), default=0)
        print(
            f"day of {count} entries, {name}: {took:.2f} s, {cpu:.2f} s of CPU, {watched.statements} statements;"
            f" longest transaction {held:.0f} ms of CPU",
            flush=True,
        )
        if profile:
            Stats(profile).sort_stats("tottime").print_stats(25)


def measure_reads(counts: list[int], *, explains: bool) -> None:
    """Print the median time of each endpoint and selector for users with these numbers of rows. Users are measured in
    turn, so that other work slows all alike. With `explains`, print the query plans of reads that are not flat."""
    from django.db import connection

    people = [store_someone(count) for count in counts]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":  # as its autovacuum does
            cursor.execute("VACUUM ANALYZE")
    reads = {address: partial(Someone.read, address=address) for address in LISTS} | selectors()
    for name, read in reads.items():
        taken = [statistics.median(times) for times in zip(*_rounds(people, read), strict=True)]
        shown = " : ".join(f"{seconds * 1000:.1f} ms" for seconds in taken)
        print(f"{name}: {shown}; {taken[-1] / taken[0]:.2f} times", flush=True)
        if explains and taken[-1] > FLAT * taken[0]:
            with connection.execute_wrapper(_explain):
                read(people[-1])


def _rounds(people: list[Someone], read: Callable[[Someone], object]) -> Iterator[list[float]]:
    for _ in range(ASKED):
        times = []
        for someone in people:
            began = time.perf_counter()
            read(someone)
            times.append(time.perf_counter() - began)
        yield times


def _explain(execute: Callable[..., Any], sql: str, values: Any, many: bool, context: Any) -> Any:
    if sql.lstrip().startswith("SELECT"):
        how = "EXPLAIN (ANALYZE)" if context["connection"].vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        execute(f"{how} {sql}", values, many, context)
        plan = context["cursor"].fetchall()
        print(f"  {' '.join(sql.split())[-400:]}", *(f"    {row[-1]}" for row in plan), sep="\n")
    return execute(sql, values, many, context)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 100_000])
    parser.add_argument("--messages", type=int, default=12_000)
    parser.add_argument("--entries", type=int, default=1_000)
    parser.add_argument(
        "--profile", action="store_true", help="print what takes the time of a day and an import"
    )
    parser.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--explain", action="store_true", help="print the plans of what is not flat")
    chosen = parser.parse_args()
    with prepared_database(chosen.database), TemporaryDirectory() as folder:
        for length in (40, 400):
            if chosen.messages >= length:
                measure_import(Path(folder), chosen.messages // length, length, profiles=chosen.profile)
        if chosen.entries:
            measure_day(chosen.entries, profiles=chosen.profile)
        if chosen.rows != [0]:
            measure_reads(chosen.rows, explains=chosen.explain)
