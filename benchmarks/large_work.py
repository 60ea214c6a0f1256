"""How long another user waits at most to write while one user's large work goes on, on SQLite.

python -m benchmarks.large_work [--messages 25000 100000] [--megabytes 18]

On a machine that does other things, too, look at the CPU of the longest transaction: that is what holds the lock.
"""

from __future__ import annotations

import argparse
import random
import shutil
import threading
import time
from collections.abc import Callable

from benchmarks.context_load import prepare
from benchmarks.stage import watch

WORDS = 20
PAUSE_S = 0.01


def measure(counts: list[int], megabytes: int) -> None:
    from chatapp.accounts.models import User
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.forgetting.services import forget_whole_conversation
    from chatapp.operations import clock
    from chatapp.operations.work_budget import TO_THE_END
    from chatapp.recall.actions.indexing import index_conversation

    chance = random.Random(5)
    words = [f"{chance.choice('bcdfg')}{chance.choice('aeiou')}{number:04d}" for number in range(8_000)]
    one = User.objects.create_user("one@example.com")
    other = User.objects.create_user("other@example.com")

    def said(count: int, length: int) -> list[ImportedMessage]:
        return [
            ImportedMessage("user" if at % 2 == 0 else "assistant", " ".join(chance.choices(words, k=length)))
            for at in range(count)
        ]

    def measure_count(count: int) -> None:
        messages, chats = said(count, WORDS), []
        waits(
            f"import {count:,} messages",
            other,
            lambda: chats.append(import_conversation(user=one, messages=messages, now=clock.now())),
        )
        waits(f"index {count:,} messages", other, lambda: index_conversation(chats[0].pk, TO_THE_END))
        waits(
            f"delete {count:,} messages, until the answer",
            other,
            lambda: forget_whole_conversation(one, chats[0].pk, now=clock.now()),
        )
        waits(f"delete {count:,} messages, the rest behind", other, finish_removals)

    for count in counts:
        measure_count(count)
    huge = said(megabytes * 10, 14_000)
    waits(
        f"import {sum(len(one.text) for one in huge) / 1e6:.0f} MB in {len(huge)} messages, with its index",
        other,
        lambda: import_conversation(user=one, messages=huge, now=clock.now()),
    )


def finish_removals() -> None:
    from chatapp.forgetting.models import Removal
    from chatapp.forgetting.services import remove_rest
    from chatapp.operations import clock

    while (row := Removal.objects.first()) is not None:
        remove_rest(row.pk, now=clock.now())


def waits(what: str, other: object, work: Callable[[], object]) -> None:
    """Print how long the work and the longest of its transactions took, and the writes of the other user meanwhile."""
    from django.db import connection

    from chatapp.conversations.actions.conversations import create_conversation
    from chatapp.operations import clock

    taken: list[float] = []
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            began = time.perf_counter()
            create_conversation(user=other, now=clock.now())
            taken.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)
        connection.close()

    writer = threading.Thread(target=write)
    writer.start()
    began = time.perf_counter()
    with watch() as watched:
        work()
    took = time.perf_counter() - began
    is_over.set()
    writer.join()
    taken.sort()
    longest, median = taken[-1] * 1_000, taken[len(taken) // 2] * 1_000
    held = max(watched.held, key=lambda one: one[1])
    others = f"another's write at most {longest:.0f} ms, median {median:.0f} ms"
    own = f"its longest transaction {held[0]:.0f} ms, {held[1]:.0f} ms of CPU"
    print(f"{what}: {took:.1f} s; {others}; {own}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, nargs="+", default=[25_000, 100_000])
    parser.add_argument("--megabytes", type=int, default=18)
    chosen = parser.parse_args()
    folder = prepare()
    try:
        measure(chosen.messages, chosen.megabytes)
    finally:
        shutil.rmtree(folder)
