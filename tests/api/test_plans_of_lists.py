"""Lists are read through an index, so that they cost the same for any number of rows: `python -m benchmarks.api`.

On SQLite only: PostgreSQL scans a small table completely, whatever indexes it has."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Folder
from chatapp.operations import clock
from chatapp.operations.http.cursors import encode_cursor


@pytest.fixture
def names(alice: User) -> dict[str, object]:
    conversation = create_conversation(user=alice, now=clock.now())
    folder = Folder.objects.create(user=alice, name="Project", created_at=clock.now())
    cursor = encode_cursor(clock.now() + timedelta(minutes=1), conversation.pk)
    return {"chat": conversation.pk, "folder": folder.pk, "cursor": cursor}


@pytest.mark.parametrize(
    ("address", "indexes"),
    [
        ("conversations", {"conversation_sidebar", "one_active_run"}),
        ("conversations?cursor={cursor}", {"conversation_sidebar"}),
        ("conversations?archived=true", {"conversation_archived"}),
        ("conversations?folder={folder}", {"conversation_in_folder"}),
        ("conversations?attention=true", {"conversation_unread", "tool_call_undecided"}),
        ("conversations/{chat}", {"one_active_run"}),
        ("memory/days", {"memory_entry_by_day"}),
        ("memory/review", {"memory_entry_proposed"}),
        ("memory/receipts", {"forget_receipt_by_user"}),
        ("memory/not-learned", {"forget_receipt_by_user"}),
        ("trash", {"trash_by_user"}),
        ("usage", {"usage_by_user"}),
    ],
)
def test_a_list_is_read_through_its_index(
    alice_client: Client, names: dict[str, object], address: str, indexes: set[str]
) -> None:
    with CaptureQueriesContext(connection) as asked:
        assert alice_client.get(f"/api/v1/{address.format_map(names)}").status_code == 200
    read = [query["sql"] for query in asked if query["sql"].lstrip().startswith("SELECT")]
    with connection.cursor() as cursor:
        plans = [cursor.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall() for sql in read]
    steps = [step for plan in plans for *_, step in plan]
    used = {word for step in steps for word in step.split()}
    assert indexes <= used, "\n".join(steps)
