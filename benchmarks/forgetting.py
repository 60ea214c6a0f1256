"""The cost of forgetting: one message, a day of hundreds, an entry among many stored requests, a day of entries.

python -m benchmarks.forgetting [--databases sqlite postgres] [--history 20000] [--said 600] [--entries 1000]

Each row shows statements, transactions, the longest transaction and the whole work, both in milliseconds of wall
clock / CPU. Other work on the machine does not change the CPU time. The databases are shown side by side.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from benchmarks.stage import moment, prepared_database, since, watch

SECRET = "The celadon vase stands on the shelf of Tamsin Quillfeather."
WORDS_KNOWN = 4_000
CHANCE = random.Random(11)
WORDS = [
    f"{CHANCE.choice('bcdfgklmnprst')}{CHANCE.choice('aeiou')}{number:03d}x" for number in range(WORDS_KNOWN)
]
STORED = 200
"""Tool calls, requests and recalls of each other conversation."""


def say(count: int) -> str:
    return ". ".join(" ".join(CHANCE.choices(WORDS, k=12)).capitalize() for _ in range(count // 12)) + "."


Rows = dict[str, str]


def row(found: Rows, what: str, work: Callable[[], object]) -> None:
    """Measure the work, print its cost and add it to `found`."""
    began = moment()
    with watch() as watched:
        work()
    took = since(began)
    longest = max(watched.held, key=lambda held: held[1])
    found[what] = (
        f"{watched.statements} | {len(watched.held)} | {longest[0]:.0f} / {longest[1]:.0f}"
        f" | {took[0]:.0f} / {took[1]:.0f}"
    )
    print(f"{what}: {found[what]}", file=sys.stderr, flush=True)


def measure(history: int, said: int, entries: int) -> Rows:
    from chatapp.accounts.models import User
    from chatapp.conversations.models import Message
    from chatapp.forgetting.services import forget_day, forget_entry, forget_message
    from chatapp.long_term.models import MemoryEntry
    from chatapp.operations import clock

    found: Rows = {}
    user = User.objects.create_user("bench@example.com")
    chat = import_chat(user, history)
    today = clock.now().date()
    target = chat.messages.filter(position=history // 2).get()
    add_runs_beside(user, 20)
    print(
        "| what is forgotten | statements | transactions | longest | all | CPU |\n|---|---|---|---|---|---|"
    )
    row(found, f"one message of {history:,}", lambda: forget_message(user, target.pk, now=clock.now()))
    row(
        found,
        "the next one",
        lambda: forget_message(user, chat.messages.get(position=history // 2 + 2).pk, now=clock.now()),
    )
    entry = recalled_entry(user)
    row(
        found,
        f"an entry, among {20 * STORED:,} stored requests and calls",
        lambda: forget_entry(user, entry.pk, now=clock.now()),
    )
    day = today - timedelta(days=3)
    add_entries(user, entries, day)
    row(found, f"each of {entries:,} entries edited", lambda: edit_day(user, day))
    row(found, f"a day of {entries:,} entries replaced by one text", lambda: replace_day(user, day))
    assert MemoryEntry.objects.filter(user=user, day=day).count() == 1
    before = today - timedelta(days=1)
    for count, when in ((said // 10, before - timedelta(days=4)), (said, before)):
        live_day(user, count, when)
        row(found, f"a day of {count} messages", lambda when=when: forget_day(user, when, now=clock.now()))
        assert not Message.objects.filter(user=user, created_at__date=when).exclude(parts=[]).exists()
    return found


def import_chat(user: Any, count: int, start: Any = None) -> Any:
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.operations import clock
    from chatapp.operations.database.work_budget import UNBOUNDED
    from chatapp.recall.actions.indexing import index_conversation

    start = start or clock.now() - timedelta(days=30)
    messages = [
        ImportedMessage(("user", "assistant")[at % 2], say(60), start + timedelta(milliseconds=at))
        for at in range(count)
    ]
    chat = import_conversation(user=user, messages=messages, now=start)
    index_conversation(chat.pk, UNBOUNDED)
    return chat


def live_day(user: Any, count: int, day: Any) -> None:
    """Store turns of that day with runs, tool calls and requests, and a summary with its entry for every fifty
    messages."""
    from datetime import UTC, datetime, time

    from chatapp.compaction.models import Compaction
    from chatapp.context.models import RequestText
    from chatapp.conversations.models import Message
    from chatapp.long_term.actions.entries import record_entry
    from chatapp.runs.models import Run, ToolCall

    at = datetime.combine(day, time(12), UTC)
    chat = import_chat(user, count, at)
    rows = list(chat.messages.order_by("position"))
    runs = [
        Run(conversation=chat, user=user, question=asked, answer=told, status="complete", created_at=at)
        for asked, told in zip(rows[::2], rows[1::2], strict=True)
    ]
    Run.objects.bulk_create(runs)
    ToolCall.objects.bulk_create([call(run, 1, at) for run in runs[::3]])
    RequestText.objects.bulk_create(
        RequestText(
            conversation=chat, sha256=f"{number:064d}", source="recall", content=json.dumps([say(200)])
        )
        for number in range(count // 4)
    )
    previous = None
    for first in range(0, count - 49, 50):
        previous = Compaction.objects.create(
            conversation=chat,
            branch=chat.branch,
            previous=previous,
            first_position=first,
            last_position=first + 49,
            message_count=50,
            kept_count=0,
            status="done",
            strategy="checkpoint",
            summary=say(200),
            summary_tokens=300,
            created_at=at,
        )
        ends = rows[first], rows[first + 49]
        text = "\n".join(f"- {Message.objects.get(pk=one.pk).parts[0]['text'][:60]}" for one in ends)
        record_entry(
            compaction=previous,
            text=text,
            first_message_id=ends[0].pk,
            last_message_id=ends[1].pk,
            at=at + timedelta(days=1),
        )


def call(run: Any, number: int, at: Any) -> Any:
    from chatapp.runs.models import ToolCall

    part = {"type": "tool_result", "call_id": f"call-{number}", "name": "search", "text": say(120)}
    return ToolCall(
        run=run,
        step=number,
        ordinal=number,
        call_id=f"call-{number}",
        name="search",
        arguments=json.dumps({"query": say(12)}),
        state="done",
        is_idempotent=True,
        is_told=True,
        result=[part],
        requested_at=at,
        finished_at=at,
    )


def add_runs_beside(user: Any, conversations: int) -> None:
    """Add conversations with stored requests, recalls and tool calls, one run each."""
    from chatapp.context.models import RequestText
    from chatapp.operations import clock
    from chatapp.realtime.models import Event
    from chatapp.runs.models import Run, ToolCall

    now = clock.now()
    for number in range(conversations):
        chat = import_chat(user, 4)
        answer = chat.messages.get(position=1)
        run = Run.objects.create(
            conversation=chat, user=user, answer=answer, status="complete", created_at=now
        )
        RequestText.objects.bulk_create(
            RequestText(
                conversation=chat,
                sha256=f"{number:032d}{at:032d}",
                source="recall",
                content=json.dumps([say(200)]),
            )
            for at in range(STORED)
        )
        Event.objects.bulk_create(
            Event(conversation=chat, seq=1_000_000 + at, type="recall", payload=RECALLED, at=now)
            for at in range(STORED)
        )
        ToolCall.objects.bulk_create([call(run, at, now) for at in range(STORED)])


RECALLED = {"type": "recall", "items": [{"source": {"kind": "message"}, "tokens": 9, "start": 0, "end": 9}]}


def recalled_entry(user: Any) -> Any:
    """Return an entry that a run has read."""
    from chatapp.long_term.changes import add_entry
    from chatapp.operations import clock
    from chatapp.recall.actions.sources import note_read
    from chatapp.runs.models import Run

    entry = add_entry(user=user, text=SECRET, day=None, now=clock.now())
    note_read(Run.objects.earliest("created_at").pk, [entry.pk])
    return entry


def add_entries(user: Any, count: int, day: Any) -> None:
    from chatapp.long_term.actions.entries import add_entry
    from chatapp.operations import clock

    for _ in range(count):
        add_entry(user=user, text=say(24), now=clock.now(), day=day)


def edit_day(user: Any, day: Any) -> None:
    from chatapp.long_term.actions.days import DaySection
    from chatapp.long_term.selectors.entries import day_entries

    rows = day_entries(user.pk, day)
    write_day(user, day, [DaySection(str(row.pk), f"{row.text} Changed.") for row in rows])


def replace_day(user: Any, day: Any) -> None:
    from chatapp.long_term.actions.days import DaySection

    write_day(user, day, [DaySection(None, say(24))])


def write_day(user: Any, day: Any, sections: Any) -> None:
    from chatapp.long_term.changes import rewrite_day
    from chatapp.operations import clock

    rewrite_day(user=user, day=day, sections=sections, now=clock.now(), version=None)


def side_by_side(databases: list[str], arguments: list[str]) -> None:
    """Print one table of all databases, each measured in its own process."""
    all_found: dict[str, Rows] = {}
    for database in databases:
        command = [sys.executable, "-m", "benchmarks.forgetting", *arguments, "--only", database]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        all_found[database] = json.loads(done.stdout.splitlines()[-1])
    heads = [f"{database}: statements | transactions | longest | all" for database in all_found]
    print(f"| what is forgotten | {' | '.join(heads)} |\n|{'---|' * (1 + 4 * len(heads))}")
    for what in all_found[databases[0]]:
        print(f"| {what} | {' | '.join(found[what] for found in all_found.values())} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--databases", nargs="+", default=["sqlite", "postgres"])
    parser.add_argument("--only", help="one database, as JSON")
    parser.add_argument("--history", type=int, default=20_000)
    parser.add_argument("--said", type=int, default=600)
    parser.add_argument("--entries", type=int, default=1_000)
    chosen = parser.parse_args()
    if chosen.only:
        with prepared_database(chosen.only):
            print(json.dumps(measure(chosen.history, chosen.said, chosen.entries)))
    else:
        side_by_side(chosen.databases, sys.argv[1:])
