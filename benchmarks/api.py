"""What the API costs: messages imported a second on SQLite, and lists and reads at two numbers of rows.

python -m benchmarks.api [--rows 100 100000] [--messages 12000]

An import's CPU says more than its time where the machine does other things: it rests for those who write meanwhile.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.context_load import prepare
from benchmarks.stage import watch

ASKED = 60
LISTS = ("/conversations?limit=30", "/conversations/{chat}", "/conversations/{chat}/messages?limit=50")
TEXT = "Pebble {n} of chat {chat} has the code PB-{n:05d} and lies between many others. " * 4


def measure_import(folder: Path, chats: int, length: int) -> None:
    """Print how fast an export of ChatGPT is imported, and the longest transaction."""
    from chatapp.accounts.models import User
    from chatapp.features.importing.importer import Report, import_file

    user = User.objects.create_user(f"import-{length}@example.com")
    file = folder / "export.json"
    file.write_text(json.dumps([_chat(number, length) for number in range(chats)]))
    report = Report()
    began, cpu = time.perf_counter(), time.process_time()
    with watch() as watched:
        import_file(user=user, path=file, report=report)
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    held = max(one[1] for one in watched.held)
    print(
        f"import {chats} chats of {length}: {report.messages / took:,.0f} messages/s,"
        f" {report.messages / cpu:,.0f} a second of CPU; longest transaction {held:.0f} ms of CPU",
        flush=True,
    )


def _chat(number: int, length: int) -> dict[str, Any]:
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


def measure_reads(counts: list[int]) -> None:
    """Print the median of each address for a user with so many messages and a tenth as many conversations."""
    from django.test import Client

    from chatapp.accounts.actions import create_token
    from chatapp.accounts.models import User
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.conversations.models import Branch, Conversation
    from chatapp.operations import clock

    asked: list[tuple[Client, object]] = []
    for count in counts:
        user = User.objects.create_user(f"rows-{count}@example.com")
        said = [ImportedMessage(("user", "assistant")[n % 2], f"Pebble {n}") for n in range(count)]
        chat = import_conversation(user=user, messages=said, now=clock.now(), index_at_once=0)
        rows = [
            Conversation(user=user, title=f"Chat {n}", last_activity_at=clock.now())
            for n in range(count // 10)
        ]
        Conversation.objects.bulk_create(rows, batch_size=500)
        branches = [Branch(conversation=row) for row in rows]
        Branch.objects.bulk_create(branches, batch_size=500)
        for row, branch in zip(rows, branches, strict=True):
            row.branch = branch
        Conversation.objects.bulk_update(rows, ["branch"], batch_size=500)
        _, secret = create_token(user=user, name="bench", scopes=["read"])
        client = Client(SERVER_NAME="localhost", headers={"Authorization": f"Bearer {secret}"})
        asked.append((client, chat.pk))
    for address in LISTS:
        taken = _times([(client, f"/api/v1{address.format(chat=chat)}") for client, chat in asked])
        shown = " : ".join(f"{seconds * 1000:.1f} ms" for seconds in taken)
        print(f"{address}: {shown}; {taken[-1] / taken[0]:.2f} times", flush=True)


def _times(asked: list[tuple[Any, str]]) -> list[float]:
    """Return the medians, asked in turn: what else the machine does is the same for all."""
    taken: list[list[float]] = [[] for _ in asked]
    for _ in range(ASKED):
        for (client, path), times in zip(asked, taken, strict=True):
            began = time.perf_counter()
            answer = client.get(path)
            times.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.content
    return [statistics.median(times) for times in taken]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 100_000])
    parser.add_argument("--messages", type=int, default=12_000)
    chosen = parser.parse_args()
    folder = prepare()
    try:
        for length in (40, 400):
            measure_import(Path(folder), chosen.messages // length, length)
        measure_reads(chosen.rows)
    finally:
        shutil.rmtree(folder)
