"""What it costs to forget one entry of a user with many stored requests and tool calls.

python -m benchmarks.forgetting [--requests 2000] [--conversations 20]
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time

from benchmarks.context_load import prepare

RECALLED_WORDS = 900
WORDS_KNOWN = 4_000
RETURNED_WORDS = 600


def measure(requests: int, conversations: int) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from chatapp.accounts.models import User
    from chatapp.context.models import RequestText
    from chatapp.conversations.actions.imports import ImportedMessage, import_conversation
    from chatapp.forgetting.services import forget_entry
    from chatapp.long_term.changes import add_entry
    from chatapp.operations import clock
    from chatapp.realtime.models import Event
    from chatapp.recall.actions.sources import note_read
    from chatapp.runs.models import Run, ToolCall

    chance = random.Random(11)
    words = [
        f"{chance.choice('bcdfgklmnprst')}{chance.choice('aeiou')}{number:03d}x"
        for number in range(WORDS_KNOWN)
    ]

    def say(count: int) -> str:
        return ". ".join(" ".join(chance.choices(words, k=12)).capitalize() for _ in range(count // 12)) + "."

    user = User.objects.create_user("bench@example.com")
    secret = "The celadon vase stands on the shelf of Tamsin Quillfeather."
    entry = add_entry(user=user, text=secret, day=None, now=clock.now())
    each = requests // conversations
    for number in range(conversations):
        said = [ImportedMessage("user" if at % 2 == 0 else "assistant", say(60)) for at in range(2 * each)]
        chat = import_conversation(user=user, messages=said, now=clock.now(), title=f"Chat {number}")
        RequestText.objects.bulk_create(
            RequestText(
                conversation=chat,
                sha256=f"{number:032d}{at:032d}",
                source="recall",
                content=_message(say(RECALLED_WORDS) + (f" {secret}" if at == 0 else "")),
            )
            for at in range(each)
        )
        Event.objects.bulk_create(
            Event(
                conversation=chat, seq=1_000_000 + at, type="recall", payload=_recall(say(25)), at=clock.now()
            )
            for at in range(each)
        )
        answer = chat.messages.get(position=1)
        run = Run.objects.create(
            conversation=chat, user=user, answer=answer, status="complete", created_at=clock.now()
        )
        ToolCall.objects.bulk_create(
            ToolCall(
                run=run,
                step=at,
                ordinal=at,
                call_id=f"call-{at}",
                name="search",
                arguments=json.dumps({"query": say(12)}),
                state="done",
                is_idempotent=True,
                is_told=True,
                result=[
                    {
                        "type": "tool_result",
                        "call_id": f"call-{at}",
                        "name": "search",
                        "text": say(RETURNED_WORDS),
                    }
                ],
                requested_at=clock.now(),
                finished_at=clock.now(),
            )
            for at in range(each)
        )
    kilobytes = sum(len(row) for row in RequestText.objects.values_list("content", flat=True)) // 1_000
    note_read(Run.objects.earliest("created_at").pk, [entry.pk])
    began, cpu = time.perf_counter(), time.process_time()
    with CaptureQueriesContext(connection) as sent:
        done = forget_entry(user, entry.pk, now=clock.now())
    took, cpu = time.perf_counter() - began, time.process_time() - cpu
    locked = [at for at, query in enumerate(sent.captured_queries) if query["sql"].startswith("BEGIN")]
    print(f"{len(sent.captured_queries)} statements, {len(locked)} transactions")
    stored = (
        f"{requests:,} stored requests and tool calls each in {conversations} conversations, {kilobytes:,} kB"
    )
    print(f"{stored}: {took:.2f} s, {cpu:.2f} s of CPU")
    print(f"removed: {done.receipt.removed}")


def _message(text: str) -> str:
    """As it is stored: JSON, however it is written."""
    return json.dumps({"role": "user", "parts": [{"type": "text", "text": text}]})


def _recall(text: str) -> dict[str, object]:
    return {"type": "recall", "items": [{"source": {"kind": "message"}, "tokens": 9, "preview": text}]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--conversations", type=int, default=20)
    chosen = parser.parse_args()
    folder = prepare()
    try:
        measure(chosen.requests, chosen.conversations)
    finally:
        shutil.rmtree(folder)
