"""Several conversations in one request: changed, each by its own rules, and exported into one file."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Folder
from chatapp.operations import clock
from chatapp.realtime.models import Event
from tests.api.program import Program
from tests.memory_store.rows import new_conversation, say

API = "/api/v1"


def change(client: Client, ids: list[str], action: str, **fields: Any) -> Any:
    body = {"ids": ids, "action": action, **fields}
    return client.post(f"{API}/conversations/bulk", body, content_type="application/json")


@pytest.fixture
def chats(alice: User) -> list[str]:
    found = [new_conversation(alice, title) for title in ("First", "Second")]
    for chat in found:
        say(chat, f"What is in {chat.title}?", "This.")
    return [str(chat.pk) for chat in found]


def test_archiving_and_moving_several_conversations_is_idempotent(
    alice: User, alice_client: Client, chats: list[str]
) -> None:
    folder = Folder.objects.create(user=alice, name="Lisbon", created_at=clock.now())
    unknown = str(uuid4())
    asked = [*chats, chats[0], unknown, "nonsense"]
    answer = change(alice_client, asked, "archive")
    told = {"done": chats, "not_found": [unknown, "nonsense"], "refused": []}
    assert (answer.status_code, answer.json()) == (200, told)
    assert Conversation.objects.filter(archived=True).count() == 2
    change(alice_client, chats, "move", folder=str(folder.pk))
    assert folder.conversations.count() == 2
    events = Event.objects.count()
    assert change(alice_client, asked, "archive").json() == told
    assert change(alice_client, chats, "move", folder=str(folder.pk)).json()["done"] == chats
    assert Event.objects.count() == events
    change(alice_client, chats, "unarchive")
    change(alice_client, chats, "move", folder=None)
    assert Conversation.objects.filter(archived=False, folder=None).count() == 2


def test_conversations_are_trashed_and_restored_together_except_temporary_ones(
    alice: User, alice_client: Client, chats: list[str]
) -> None:
    passing = str(new_conversation(alice, temporary=True).pk)
    for _ in ("at first", "and again"):
        told = change(alice_client, [*chats, passing], "trash").json()
        assert told["done"] == chats
        assert [each["id"] for each in told["refused"]] == [passing]
    assert alice_client.get(f"{API}/conversations").json()["items"] == []
    assert alice_client.get(f"{API}/conversations/{passing}").status_code == 200
    for _ in ("at first", "and again"):
        assert change(alice_client, chats, "restore").json()["done"] == chats
    assert len(alice_client.get(f"{API}/conversations").json()["items"]) == 2


def test_other_users_cannot_change_or_export_conversations(
    alice: User, charlie_client: Client, chats: list[str]
) -> None:
    folder = Folder.objects.create(user=alice, name="Lisbon", created_at=clock.now())
    for action in ("archive", "unarchive", "move", "trash", "restore"):
        assert change(charlie_client, chats, action).json()["not_found"] == chats
    assert change(charlie_client, chats, "move", folder=str(folder.pk)).status_code == 404
    assert charlie_client.get(f"{API}/conversations/export", {"ids": ",".join(chats)}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"ids": [], "action": "archive"},
        {"ids": ["a"] * 101, "action": "archive"},
        {"ids": ["a"], "action": "delete"},
        {"ids": ["a"], "action": "archive", "folder": None},
        {"ids": ["a"], "action": "archive", "all": True},
    ],
)
def test_invalid_bulk_requests_return_422(alice_client: Client, body: dict[str, Any]) -> None:
    answer = alice_client.post(f"{API}/conversations/bulk", body, content_type="application/json")
    assert answer.status_code == 422


@pytest.mark.parametrize(("format", "ending"), [("markdown", ".md"), ("json", ".json")])
async def test_up_to_100_conversations_are_exported_into_one_file(
    alice_program: Program, chats: list[str], format: str, ending: str
) -> None:
    answer = await alice_program.get("conversations/export", ids=",".join(chats), format=format)
    with ZipFile(BytesIO(answer.content)) as files:
        names = files.namelist()
        assert [name.endswith(ending) for name in names] == [True, True]
        assert b"What is in First?" in files.read(names[0])
    many = ",".join(str(n) for n in range(101))
    assert (await alice_program.get("conversations/export", ids=many)).status_code == 422
