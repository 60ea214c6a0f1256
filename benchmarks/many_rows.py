"""Stores a user with any number of rows of each kind by SQL, and lists the reads. Used by `benchmarks.api`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

LISTS = (
    "/conversations?limit=30",
    "/conversations?limit=30&cursor={deep}",
    "/conversations?limit=30&archived=true",
    "/conversations?limit=30&attention=true",
    "/conversations?limit=30&folder={folder}",
    "/conversations/{chat}",
    "/conversations/{chat}/messages?limit=50",
    "/conversations/{chat}/messages?limit=50&before=60",
    "/conversations/{chat}/feedback",
    "/memory/days",
    "/memory/days/{day}",
    "/memory/stats",
    "/memory/review",
    "/memory/receipts",
    "/memory/not-learned",
    "/trash",
    "/usage",
    "/me",
)

APART = {"hours": (430, "minutes")}
"""Spaces rows out, so that the last 30 days have a hundred rows, however many are older."""


@dataclass(frozen=True)
class Someone:
    """A user with many rows, an API client, and the values of path parameters."""

    user: Any
    client: Any
    names: Mapping[str, object]

    def read(self, address: str) -> None:
        answer = self.client.get(f"/api/v1{address.format_map(self.names)}")
        assert answer.status_code == 200, answer.content


def store_someone(count: int) -> Someone:
    """Store a user with `count` conversations, messages in one of them, entries, receipts and so on."""
    from django.test import Client

    from chatapp.accounts.actions import create_token
    from chatapp.accounts.models import User
    from chatapp.conversations.models import Branch, Conversation, Folder, Message
    from chatapp.forgetting.models import ForgetReceipt, Tombstone, TrashedConversation
    from chatapp.long_term.models import MemoryEntry
    from chatapp.operations import clock
    from chatapp.operations.http.cursors import encode_cursor
    from chatapp.providers.models import Usage
    from chatapp.realtime.models import Event
    from chatapp.runs.models import Run

    user, now = User.objects.create_user(f"rows-{count}@example.com"), clock.now()
    folder = Folder.objects.create(user=user, name="Project", created_at=now)
    half = "CASE n %% 2 WHEN 0 THEN {} ELSE {} END"

    def conversation(**columns: Any) -> Conversation:
        row = Conversation.objects.create(user=user, title="Pebbles", last_activity_at=now, **columns)
        row.branch = Branch.objects.create(conversation=row)
        row.save()
        return row

    chat = conversation(next_position=count, read_count=count, indexed_below=count)
    copy_row(chat, count, last_activity_at=earlier("minutes"))
    # Add a few old conversations that are archived, in a folder, unread or not indexed.
    for columns in ({"archived": True}, {"folder": folder}, {"read_count": 0}, {"indexed_below": 0}):
        few = conversation(**{"next_position": 1, "read_count": 1, "indexed_below": 1} | columns)
        copy_row(few, 5, last_activity_at=earlier("days"))
    of_chat = {"conversation": chat, "user": user}
    said = {"parts": [{"type": "text", "text": "Pebble PB-1 lies between many others."}], "created_at": now}
    first = Message.objects.create(**of_chat, branch=chat.branch, position=0, role="user", **said)
    copy_row(first, count, position="n", role=half.format("'user'", "'assistant'"))
    answer = Message.objects.get(conversation=chat, position=1)
    run = Run.objects.create(**of_chat, answer=answer, status="complete", created_at=now)
    answers = f"(SELECT id AS answer, position AS n FROM {_table(Message)} WHERE conversation_id = %s"
    answers += " AND role = 'assistant' AND position > 1)"
    copy_row(run, count, answers, [_key(chat)], answer_id="answer", created_at=earlier("minutes"))
    event = Event.objects.create(conversation=chat, seq=0, type="run.started", run=run, payload={}, at=now)
    runs = f"(SELECT id AS run, row_number() OVER () AS n FROM {_table(Run)} WHERE conversation_id = %s)"
    copy_row(event, count, runs, [_key(chat)], seq="n", run_id="run")
    usage = Usage.objects.create(
        **of_chat, run=run, purpose="chat", input_tokens=1, output_tokens=1, exact=True
    )
    copy_row(usage, count, created_at=earlier("hours"))
    entry = MemoryEntry.objects.create(
        user=user, day=now.date(), text="Alice keeps bees.", created_at=now, written_at=now
    )
    copy_row(entry, count, day=earlier_day("hours"), created_at=earlier("hours"))
    receipt = ForgetReceipt.objects.create(user=user, what="entry", at=now)
    copy_row(receipt, count, at=earlier("hours"))
    barred = Tombstone.objects.create(user=user, whole=-count, words=b"", receipt=receipt, created_at=now)
    receipts = f"(SELECT id AS receipt, row_number() OVER () AS n FROM {_table(ForgetReceipt)}"
    receipts += " WHERE user_id = %s)"
    copy_row(barred, count, receipts, [_key(user)], whole="n", receipt_id="receipt")
    gone = conversation(temporary=True)
    copy_row(gone, count, user_id="NULL")
    Conversation.objects.filter(pk=gone.pk).update(user=None)
    trashed = TrashedConversation.objects.create(
        conversation=gone,
        user=user,
        reason="by_hand",
        trashed_at=now,
        purge_at=now.replace(year=now.year + 1),
    )
    hidden = f"(SELECT id AS place, row_number() OVER () AS n FROM {_table(Conversation)}"
    hidden += " WHERE user_id IS NULL AND branch_id = %s AND id <> %s)"
    places = [_key(gone.branch), _key(gone)]
    copy_row(trashed, count, hidden, places, conversation_id="place", trashed_at=earlier("minutes"))
    _, secret = create_token(user=user, name="bench", scopes=["read"])
    client = Client(SERVER_NAME="localhost", headers={"Authorization": f"Bearer {secret}"})
    deep = encode_cursor(now - timedelta(minutes=count * 2 // 3), chat.pk)
    return Someone(user, client, {"chat": chat.pk, "folder": folder.pk, "day": now.date(), "deep": deep})


def selectors() -> dict[str, Callable[[Someone], object]]:
    """Return the selectors that are called outside of these endpoints, by each turn or every few seconds."""
    from chatapp.operations import clock
    from chatapp.recall.selectors.unindexed import overlooked_conversations, unindexed_conversations

    return {
        "unindexed_conversations": lambda one: unindexed_conversations(one.user.pk),
        "overlooked_conversations": lambda one: overlooked_conversations(clock.now()),
    }


def copy_row(row: Any, count: int, numbers: str = "", values: Any = (), **columns: str) -> None:
    """Store copies of a row in one statement. `columns` are SQL expressions of `n`, which counts from 1. `numbers` is
    another source of `n`, with the parameters `values`."""
    from django.db import connection

    chosen = {field.column: f"copied.{field.column}" for field in row._meta.concrete_fields}
    key = row._meta.pk.column
    is_postgres = connection.vendor == "postgresql"
    if row._meta.auto_field:
        del chosen[key]
    else:
        chosen[key] = _ordered_key(is_postgres)
    chosen |= columns
    quoted = [connection.ops.quote_name(name) for name in chosen]
    counted = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %s)"
    table = _table(type(row))
    with connection.cursor() as cursor:
        # Triggers would write an edition for each row, which is quadratic in one transaction.
        if is_postgres:
            cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            f"{counted} INSERT INTO {table} ({', '.join(quoted)}) SELECT {', '.join(chosen.values())}"
            f" FROM {table} AS copied, {numbers or 'numbers'} AS source WHERE copied.{key} = %s",
            [count, *values, _key(row)],
        )
        # Otherwise foreign keys are checked with plans made for empty tables, which takes hours for a million rows.
        if is_postgres:
            cursor.execute(f"ANALYZE {table}")
            cursor.execute("SET session_replication_role = DEFAULT")


def _ordered_key(is_postgres: bool) -> str:
    """Return the SQL of a key that is greater than all earlier ones, like the service's keys."""
    from chatapp.operations.database.ids import new_id

    first = int(new_id().hex[:16], 16)
    if is_postgres:
        return f"(lpad(to_hex({first} + n), 16, '0') || left(md5(random()::text), 16))::uuid"
    return f"printf('%%016x', {first} + n) || lower(hex(randomblob(8)))"


def earlier(unit: str) -> str:
    """Return the SQL of the moment `n` units ago."""
    from django.db import connection

    apart, unit = APART.get(unit, (1, unit))
    if connection.vendor == "postgresql":
        return f"now() - n * interval '{apart} {unit}'"
    return f"strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-' || (n * {apart}) || ' {unit}')"


def earlier_day(unit: str) -> str:
    return f"CAST({earlier(unit)} AS date)" if "interval" in earlier(unit) else f"date({earlier(unit)})"


def _table(model: Any) -> str:
    return str(model._meta.db_table)


def _key(row: Any) -> Any:
    from chatapp.operations.database.statements import as_stored

    return as_stored(row.pk)
