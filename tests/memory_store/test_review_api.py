"""Memory settings, and the queue of entries that wait for their user's approval."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry, MemoryPause
from chatapp.realtime.models import Event
from chatapp.recall.actions.indexing import rebuild_index
from chatapp.recall.user_search import search_memory
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

Clients = Callable[..., Client]
SETTINGS = "/api/v1/memory/settings"
REVIEW = "/api/v1/memory/review"


@pytest.fixture
def client(alice: User, api_client: Clients) -> Client:
    return api_client(alice)


@pytest.fixture
def conversation(alice: User, client: Client) -> Conversation:
    assert change(client, review=True) == {"paused": False, "review": True, "profile": True}
    alice.refresh_from_db()
    return new_conversation(alice)


def change(client: Client, **settings: bool) -> Any:
    answer = client.patch(SETTINGS, settings, content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def learn(conversation: Conversation, text: str, number: int = 0) -> MemoryEntry | None:
    [message] = say(conversation, "Hello.")
    entry = record_entry(
        compaction=finished_compaction(conversation, number),
        text=text,
        first_message_id=message.pk,
        last_message_id=message.pk,
        at=NOW + timedelta(seconds=number),
    )
    memory_files.sweep_unwritten()
    return entry


def events(conversation: Conversation) -> list[str]:
    return list(
        Event.objects.filter(conversation=conversation).order_by("seq").values_list("type", flat=True)
    )


def shown_anywhere(user: User, client: Client) -> bool:
    found = search_memory(user_id=user.pk, query="heliotrope", limit=5, now=NOW, zone=UTC)
    days = client.get("/api/v1/memory/days").json()["items"]
    return bool(found) or bool(days) or memory_files.day_path(user.pk, NOW.date()).exists()


@pytest.mark.mechanism("memory.review")
def test_an_extracted_entry_is_shown_nowhere_until_it_is_approved(
    alice: User, client: Client, conversation: Conversation
):
    learn(conversation, "Likes heliotrope.")
    [waiting] = client.get(REVIEW).json()["items"]
    assert (waiting["text"], waiting["state"]) == ("Likes heliotrope.", "proposed")
    assert events(conversation) == ["memory.proposed"]
    rebuild_index(alice.pk)
    memory_files.rebuild_files(alice.pk)
    assert not shown_anywhere(alice, client)
    assert client.get("/api/v1/memory/days/2026-11-21").status_code == 404

    approved = client.post(f"{REVIEW}/{waiting['id']}/approve").json()
    assert approved["state"] == "kept"
    assert client.post(f"{REVIEW}/{waiting['id']}/approve").json() == approved
    assert shown_anywhere(alice, client)
    assert "heliotrope" in memory_files.day_path(alice.pk, NOW.date()).read_text()
    assert events(conversation) == ["memory.proposed", "memory.written"]
    assert client.get(REVIEW).json()["items"] == []


def test_a_rejected_entry_is_deleted(alice: User, client: Client, conversation: Conversation):
    entry = learn(conversation, "Likes heliotrope.")
    assert entry is not None
    assert client.post(f"{REVIEW}/{entry.pk}/reject").status_code == 204
    assert client.post(f"{REVIEW}/{entry.pk}/approve").status_code == 404
    assert not MemoryEntry.objects.exists()
    assert not shown_anywhere(alice, client)


def test_an_approved_entry_cannot_be_rejected(client: Client, conversation: Conversation):
    entry = learn(conversation, "Likes heliotrope.")
    assert entry is not None
    client.post(f"{REVIEW}/{entry.pk}/approve")
    assert client.post(f"{REVIEW}/{entry.pk}/reject").status_code == 409
    assert MemoryEntry.objects.exists()


def test_a_proposed_entry_can_be_edited_before_its_approval(
    alice: User, client: Client, conversation: Conversation
):
    entry = learn(conversation, "Likes heliotrope.")
    assert entry is not None
    body = {"text": "Likes heliotrope, the flower."}
    client.patch(f"/api/v1/memory/entries/{entry.pk}", body, content_type="application/json")
    assert not shown_anywhere(alice, client)
    assert client.post(f"{REVIEW}/{entry.pk}/approve").json()["text"] == "Likes heliotrope, the flower."


def test_the_queue_is_paged_newest_first(client: Client, conversation: Conversation):
    for number in range(3):
        learn(conversation, f"Fact {number}.", number)
    first = client.get(f"{REVIEW}?limit=2").json()
    assert [entry["text"] for entry in first["items"]] == ["Fact 2.", "Fact 1."]
    rest = client.get(f"{REVIEW}?limit=2&cursor={first['next_cursor']}").json()
    assert [entry["text"] for entry in rest["items"]] == ["Fact 0."]
    assert rest["next_cursor"] is None


def test_an_entry_added_by_its_user_needs_no_approval(client: Client, conversation: Conversation):
    body = {"text": "Mine."}
    entry = client.post("/api/v1/memory/entries", body, content_type="application/json").json()
    assert entry["state"] == "kept"


def test_a_misspelt_setting_is_refused(alice: User, api_client: Clients) -> None:
    answer = api_client(alice).patch(SETTINGS, {"pause": True}, content_type="application/json")
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == "pause"


def test_other_users_cannot_access_the_queue_and_have_their_own_settings(
    client: Client, conversation: Conversation, charlie: User, api_client: Clients
):
    entry = learn(conversation, "Likes heliotrope.")
    assert entry is not None
    other = api_client(charlie)
    assert other.get(REVIEW).json()["items"] == []
    assert other.post(f"{REVIEW}/{entry.pk}/approve").status_code == 404
    assert other.post(f"{REVIEW}/{entry.pk}/reject").status_code == 404
    assert other.get(SETTINGS).json()["review"] is False
    assert MemoryEntry.objects.get().state == "proposed"


def test_while_memory_is_paused_nothing_is_learned(client: Client, alice: User):
    change(client, paused=True)
    alice.refresh_from_db()
    conversation = new_conversation(alice)
    assert learn(conversation, "Likes heliotrope.") is None
    change(client, paused=False)
    conversation.refresh_from_db()
    assert learn(Conversation.objects.get(), "Likes violets.", 1) is not None


def test_memory_can_be_paused_for_a_single_conversation(client: Client, alice: User):
    paused, other = new_conversation(alice), new_conversation(alice)
    address = f"/api/v1/conversations/{paused.pk}"
    assert client.get(address).json()["memory"] == "on"
    changed = client.patch(address, {"memory": "paused"}, content_type="application/json")
    assert changed.json()["memory"] == "paused"
    assert learn(Conversation.objects.get(pk=paused.pk), "Likes heliotrope.") is None
    assert learn(other, "Likes violets.") is not None
    made = client.post("/api/v1/conversations", {"memory": "paused"}, content_type="application/json").json()
    assert made["memory"] == "paused"
    refused = client.patch(address, {"memory": "off"}, content_type="application/json")
    assert refused.status_code == 422


def test_a_pause_is_kept_after_its_end_and_pausing_twice_stores_one_pause(client: Client):
    change(client, paused=True)
    change(client, paused=True)
    [pause] = MemoryPause.objects.all()
    assert pause.ended_at is None
    change(client, paused=False)
    pause.refresh_from_db()
    assert pause.ended_at is not None
    change(client, paused=True)
    assert MemoryPause.objects.count() == 2
