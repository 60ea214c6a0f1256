"""How long a user waits at most to write while another user's large work runs, on SQLite.

python -m benchmarks.large_work [--works day trash] [--messages 25000 100000] [--megabytes 18]

On a busy machine, look at the CPU time of the longest transaction, because a transaction holds the lock.
"""

from __future__ import annotations

import argparse
import random
import shutil
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from benchmarks.context_load import prepare
from benchmarks.forgetting import add_entries, add_runs_beside, live_day
from benchmarks.stage import watch

WORDS = 20
PAUSE_S = 0.01
WORKS = ["day", "conversation", "trash", "retention", "huge", "account"]
ALLOWED_MS = 50


def measure(works: list[str], counts: list[int], megabytes: int) -> None:
    from chatapp.accounts.models import User
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.conversations.models import Conversation
    from chatapp.forgetting.accounts import delete_account
    from chatapp.forgetting.removing import delete_abandoned_indexes
    from chatapp.forgetting.services import forget_all, forget_day, forget_whole_conversation
    from chatapp.forgetting.trash.actions import empty_trash
    from chatapp.forgetting.trash.services import clean_up_idle, move_to_trash, purge_due
    from chatapp.operations import clock
    from chatapp.operations.database.work_budget import UNBOUNDED
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
        waits(f"index {count:,} messages", other, lambda: index_conversation(chats[0].pk, UNBOUNDED))
        waits(
            f"delete {count:,} messages, until the answer",
            other,
            lambda: forget_whole_conversation(one, chats[0].pk, now=clock.now()),
        )
        waits(f"delete {count:,} messages, the rest behind", other, finish_removals)

    def filled(count: int) -> Any:
        messages = said(count, WORDS)
        chat = import_conversation(user=one, messages=messages, now=clock.now())
        index_conversation(chat.pk, UNBOUNDED)
        return chat

    def measure_trash(count: int) -> None:
        chat = filled(count)
        at = clock.now()
        waits(
            f"{count:,} messages to the trash",
            other,
            lambda: move_to_trash(one, str(chat.pk), days=30, now=at),
        )
        finish_removals()
        empty_trash(user=one, now=clock.now())
        waits(f"empty the trash of {count:,} messages", other, lambda: purge_due(now=clock.now()))
        waits("its rest behind", other, finish_removals)

    def measure_retention(count: int) -> None:
        chat = filled(count)
        Conversation.objects.filter(pk=chat.pk).update(last_activity_at=clock.now() - timedelta(days=90))
        waits(
            f"retention of {count:,} messages",
            other,
            lambda: clean_up_idle(now=clock.now(), days=30, trash_days=0),
        )
        waits("its rest behind", other, finish_removals)

    def measure_day(count: int) -> None:
        when = clock.now().date() - timedelta(days=7)
        live_day(one, count, when)
        waits(f"forget a day of {count:,} messages", other, lambda: forget_day(one, when, now=clock.now()))
        waits("its rest behind", other, finish_removals)

    def measure_account(count: int) -> None:
        filled(count)
        add_runs_beside(one, 20)
        add_entries(one, 500, clock.now().date())
        live_day(one, 600, clock.now().date() - timedelta(days=9))
        waits(f"forget everything of {count:,} messages", other, lambda: forget_all(one, now=clock.now()))
        waits("its rest behind", other, finish_removals)
        waits("the index behind", other, lambda: delete_abandoned_indexes(UNBOUNDED))
        filled(count)
        add_runs_beside(one, 20)
        add_entries(one, 500, clock.now().date())
        live_day(one, 600, clock.now().date() - timedelta(days=9))
        User.objects.create_superuser("admin@example.com")
        waits(f"delete an account of {count:,} messages", other, lambda: delete_account(one, now=clock.now()))
        waits("its rest behind", other, finish_removals)
        waits("the index behind", other, lambda: delete_abandoned_indexes(UNBOUNDED))

    for size in (60, 600) if "day" in works else ():
        measure_day(size)
    for count in counts:
        for name, work in (
            ("conversation", measure_count),
            ("trash", measure_trash),
            ("retention", measure_retention),
        ):
            if name in works:
                work(count)
    if "huge" in works:
        huge = said(megabytes * 10, 14_000)
        waits(
            f"import {sum(len(one.text) for one in huge) / 1e6:.0f} MB in {len(huge)} messages, with its index",
            other,
            lambda: import_conversation(user=one, messages=huge, now=clock.now()),
        )
    if "account" in works:
        measure_account(counts[0])


def finish_removals() -> None:
    from chatapp.forgetting.models import Removal
    from chatapp.forgetting.services import remove_rest
    from chatapp.operations import clock

    while (row := Removal.objects.first()) is not None:
        remove_rest(row.pk, now=clock.now())


def waits(what: str, other: object, work: Callable[[], object]) -> None:
    """Print the time of the work, of its longest transactions, and of the other user's concurrent writes."""
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
    held = sorted(watched.held, key=lambda one: one[1])[-5:][::-1]
    over = sum(one[1] > ALLOWED_MS for one in watched.held)
    others = f"another's write at most {longest:.0f} ms, median {median:.0f} ms"
    own = f"{len(watched.held)} transactions, {over} of them above {ALLOWED_MS} ms of CPU, the longest:"
    print(f"{what}: {took:.1f} s; {others}; {own}")
    for elapsed, cpu, who in held:
        print(f"    {elapsed:.0f} ms, {cpu:.0f} ms of CPU: {who}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", nargs="+", default=WORKS, choices=WORKS)
    parser.add_argument("--messages", type=int, nargs="+", default=[25_000, 100_000])
    parser.add_argument("--megabytes", type=int, default=18)
    chosen = parser.parse_args()
    folder = prepare()
    try:
        measure(chosen.works, chosen.messages, chosen.megabytes)
    finally:
        shutil.rmtree(folder)
