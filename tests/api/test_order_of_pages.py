"""Lists have a fixed order, and pages lose no rows, if several rows have the same time."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import ApiToken, User
from chatapp.conversations import export
from chatapp.conversations.export import export_pages
from chatapp.conversations.models import Message
from chatapp.files.models import Attachment
from chatapp.forgetting.models import ForgetReceipt
from chatapp.long_term.models import MemoryEntry
from chatapp.operations.database.ids import new_id
from tests.memory_store.rows import NOW, new_conversation, say

V1 = "/api/v1"
MADE = 7


def all_ids(client: Client, path: str) -> list[str]:
    """Return the ids from all pages of two items."""
    found: list[str] = []
    cursor = ""
    while True:
        answer: dict[str, Any] = client.get(f"{V1}/{path}", {"limit": 2, "cursor": cursor}).json()
        found += [item["id"] for item in answer["items"]]
        if not (cursor := answer["next_cursor"]):
            return found


def newest_first(rows: list[Any]) -> list[str]:
    return [str(row.pk) for row in reversed(rows)]


def test_conversations_of_the_same_time_are_paged_newest_first(alice: User, alice_client: Client) -> None:
    made = [new_conversation(alice, at=NOW) for _ in range(MADE)]
    assert all_ids(alice_client, "conversations") == newest_first(made)


def test_receipts_of_the_same_time_are_paged_newest_first(alice: User, alice_client: Client) -> None:
    made = [
        ForgetReceipt.objects.create(user=alice, what=ForgetReceipt.What.ENTRY, at=NOW) for _ in range(MADE)
    ]
    assert all_ids(alice_client, "memory/receipts") == newest_first(made)


def test_proposed_entries_of_the_same_time_are_paged_newest_first(alice: User, alice_client: Client) -> None:
    made = [
        MemoryEntry.objects.create(
            user=alice, text="Tea", day=NOW.date(), created_at=NOW, state=MemoryEntry.State.PROPOSED
        )
        for _ in range(MADE)
    ]
    assert all_ids(alice_client, "memory/review") == newest_first(made)


def test_tokens_of_the_same_time_are_listed_newest_first(alice: User, alice_client: Client) -> None:
    made = [ApiToken.objects.create(user=alice, name="t", token_hash=str(n)) for n in range(MADE)]
    ApiToken.objects.update(created_at=NOW)
    listed = [item["id"] for item in alice_client.get(f"{V1}/tokens").json()["items"]]
    assert listed[:MADE] == newest_first(made)


def test_memory_entries_of_the_same_time_are_listed_in_the_order_of_their_ids(
    alice: User, alice_client: Client
) -> None:
    conversation = new_conversation(alice)
    say(conversation, "Hello")
    ids = [new_id() for _ in range(MADE)]
    for entry_id in reversed(ids):
        MemoryEntry.objects.create(
            pk=entry_id,
            user=alice,
            conversation=conversation,
            text="Tea",
            day=NOW.date(),
            created_at=NOW,
            written_at=NOW,
        )
    [item] = alice_client.get(f"{V1}/conversations/{conversation.pk}/messages").json()["items"]
    assert [note["entry_id"] for note in item["remembered"]] == [str(entry_id) for entry_id in ids]


def test_an_answer_that_moves_during_an_export_is_exported_once(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first page is sent, a tool call and its result are inserted before the answer."""
    monkeypatch.setattr(export, "PAGE", 2)
    conversation = new_conversation(alice)
    question, answer, injected = say(conversation, "Where is it?", "I look.", "In the north.")
    pages = export_pages(Message.objects.filter(conversation=conversation))
    found = [message["id"] for message in next(pages)]
    for moved, place in ((injected, 4), (answer, 3)):
        Message.objects.filter(pk=moved.pk).update(position=place)
    Message.objects.filter(pk=injected.pk).delete()
    assert [*found, *(message["id"] for page in pages for message in page)] == [
        str(question.pk),
        str(answer.pk),
    ]


def test_files_of_a_message_are_exported_in_the_order_of_their_ids(alice: User) -> None:
    conversation = new_conversation(alice)
    [message] = say(conversation, "Look")
    ids = [new_id() for _ in range(MADE)]
    for file_id in reversed(ids):
        message.attachments.add(
            Attachment.objects.create(
                pk=file_id, user=alice, name="a.txt", sha256="0", mime_type="text/plain", size_bytes=1
            )
        )
    Attachment.objects.update(created_at=NOW)
    [[exported]] = export_pages(Message.objects.filter(conversation=conversation))
    assert [one["id"] for one in exported["attachments"]] == [str(file_id) for file_id in ids]
