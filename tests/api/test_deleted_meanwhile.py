"""Another request deletes a row after this request has found it: return 409 and store nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.actions import conversations
from chatapp.conversations.folders import actions as folders
from chatapp.conversations.models import Conversation, Folder
from tests.memory_store.rows import NOW, new_conversation

pytestmark = pytest.mark.django_db(transaction=True)
JSON = "application/json"


def after(call: Callable[..., Any], then: Callable[[], object]) -> Callable[..., Any]:
    """Return `call`, followed by `then`, the work of another request."""

    def both(*given: Any) -> Any:
        found = call(*given)
        then()
        return found

    return both


@pytest.fixture
def client(alice: User, api_client: Callable[..., Client]) -> Client:
    return api_client(alice)


@pytest.fixture
def folder(alice: User) -> Folder:
    return Folder.objects.create(user=alice, name="Work", created_at=NOW)


@pytest.fixture
def chat(alice: User) -> Conversation:
    return new_conversation(alice)


def check_refusal(answer: Any) -> None:
    assert answer.status_code == 409, answer.content
    assert answer.json()["error"]["message"].startswith("The item that this belongs to was just deleted")


def test_moving_a_conversation_to_a_concurrently_deleted_folder_returns_409(
    client: Client, chat: Conversation, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = Folder.objects.filter(pk=folder.pk).delete
    monkeypatch.setattr(conversations, "lock_conversation", after(conversations.lock_conversation, delete))
    to = {"folder": str(folder.pk)}
    check_refusal(client.patch(f"/api/v1/conversations/{chat.pk}", to, content_type=JSON))
    bulk = {"ids": [str(chat.pk)], "action": "move", **to}
    check_refusal(client.post("/api/v1/conversations/bulk", bulk, content_type=JSON))
    chat.refresh_from_db()
    assert chat.folder_id is None


def test_renaming_a_concurrently_deleted_folder_returns_409(
    client: Client, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = Folder.objects.filter(pk=folder.pk).delete
    monkeypatch.setattr(folders, "accessible_folder", after(folders.accessible_folder, delete))
    check_refusal(client.patch(f"/api/v1/folders/{folder.pk}", {"name": "Play"}, content_type=JSON))
    assert not Folder.objects.exists()


def test_giving_a_folder_a_concurrently_deleted_agent_returns_409(
    client: Client, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error must not be that the name is taken."""
    agent = Agent.objects.create(name="Porter")
    delete = Agent.objects.filter(pk=agent.pk).delete
    monkeypatch.setattr(folders, "accessible_folder", after(folders.accessible_folder, delete))
    change = {"agent": str(agent.pk)}
    check_refusal(client.patch(f"/api/v1/folders/{folder.pk}", change, content_type=JSON))


def test_an_integrity_error_of_our_own_still_returns_500(
    client: Client, chat: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_twice() -> None:
        Conversation.objects.create(pk=chat.pk, user_id=chat.user_id, last_activity_at=NOW)

    monkeypatch.setattr(
        conversations, "lock_conversation", after(conversations.lock_conversation, write_twice)
    )
    answer = client.patch(f"/api/v1/conversations/{chat.pk}", {"title": "Twice"}, content_type=JSON)
    assert answer.status_code == 500
