from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

Clients = Callable[[User], Client]


@pytest.fixture
def three_days(alice: User) -> list[MemoryEntry]:
    conversation = new_conversation(alice, "Garden")
    [message] = say(conversation, "We planted a plum tree.")
    entries = []
    for number in range(3):
        entry = record_entry(
            compaction=finished_compaction(conversation, number),
            text=f"Fact {number} about the orchard.",
            first_message_id=message.pk,
            last_message_id=message.pk,
            at=NOW - timedelta(days=number),
        )
        assert entry is not None
        entries.append(entry)
    return entries


def test_days_are_listed_newest_first_and_page_by_page(
    alice: User, charlie: User, api_client: Clients, three_days: list[MemoryEntry]
):
    first = api_client(alice).get("/api/v1/memory/days?limit=2").json()
    assert first["items"] == [
        {"day": "2026-11-21", "entry_count": 1},
        {"day": "2026-11-20", "entry_count": 1},
    ]
    rest = api_client(alice).get(f"/api/v1/memory/days?limit=2&cursor={first['next_cursor']}").json()
    assert rest == {"items": [{"day": "2026-11-19", "entry_count": 1}], "next_cursor": None}
    assert api_client(charlie).get("/api/v1/memory/days").json()["items"] == []


def test_a_day_contains_its_markdown_and_its_entries(
    alice: User, charlie: User, api_client: Clients, three_days: list[MemoryEntry]
):
    day = api_client(alice).get("/api/v1/memory/days/2026-11-21").json()
    assert day["day"] == "2026-11-21"
    assert "Fact 0 about the orchard." in day["markdown"]
    [entry] = day["entries"]
    assert entry["text"] == "Fact 0 about the orchard."
    assert entry["conversation_id"] == str(three_days[0].conversation_id)
    assert entry["created_at"] == "2026-11-21T20:00:00Z"
    assert api_client(charlie).get("/api/v1/memory/days/2026-11-21").status_code == 404


@pytest.mark.parametrize("day", ["2020-01-01", "yesterday", "2026-13-40"])
def test_a_day_without_memory_is_not_found(alice: User, api_client: Clients, day: str):
    assert api_client(alice).get(f"/api/v1/memory/days/{day}").status_code == 404


@pytest.mark.parametrize("cursor", ["x", "2026-99-99"])
def test_an_invalid_cursor_returns_422(alice: User, api_client: Clients, cursor: str):
    assert api_client(alice).get(f"/api/v1/memory/days?cursor={cursor}").status_code == 422


def test_search_finds_only_the_users_own_messages_and_entries(
    alice: User, charlie: User, api_client: Clients, three_days: list[MemoryEntry]
):
    found = api_client(alice).get("/api/v1/memory/search", {"q": "which tree did we plant?"}).json()["items"]
    assert found[0]["text"] == "We planted a plum tree."
    assert found[0]["source"]["kind"] == "message"
    assert found[0]["source"]["conversation_id"] == str(three_days[0].conversation_id)
    assert found[0]["created_at"] == "2026-11-21T20:00:00Z"
    entries = api_client(alice).get("/api/v1/memory/search", {"q": "orchard", "limit": "2"}).json()["items"]
    assert [item["source"]["kind"] for item in entries] == ["entry", "entry"]
    assert entries[0]["source"]["day"] == "2026-11-21"
    assert api_client(charlie).get("/api/v1/memory/search", {"q": "plum tree orchard"}).json()["items"] == []


def test_search_without_words_finds_nothing(alice: User, api_client: Clients, three_days: list[MemoryEntry]):
    assert api_client(alice).get("/api/v1/memory/search", {"q": "?!"}).json()["items"] == []


@pytest.mark.parametrize("query", ["", "limit=0&q=x", "limit=101&q=x", "q=" + "x" * 2_001])
def test_a_malformed_search_is_refused(alice: User, api_client: Clients, query: str):
    assert api_client(alice).get(f"/api/v1/memory/search?{query}").status_code == 422
