"""Days begin at midnight in the user's time zone, even when clocks change and when the user moves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import StaleDay
from tests.memory_store.rows import finished_compaction, new_conversation, say

Clients = Callable[..., Client]
DAYS = "/api/v1/memory/days"

MIDNIGHTS = [
    # zone, last moment of a day and first of the next (both in UTC), that day
    ("UTC", "2026-11-21T23:59:59.999999", "2026-11-22T00:00:00", "2026-11-21"),
    ("Asia/Tokyo", "2026-11-21T14:59:59.900000", "2026-11-21T15:00:00", "2026-11-21"),
    ("America/New_York", "2026-11-22T04:59:59.900000", "2026-11-22T05:00:00", "2026-11-21"),
    ("Asia/Kathmandu", "2026-11-21T18:14:59.900000", "2026-11-21T18:15:00", "2026-11-21"),
    # Berlin's clocks go back on 25 October, which has 25 hours.
    ("Europe/Berlin", "2026-10-24T21:59:59.900000", "2026-10-24T22:00:00", "2026-10-24"),
    ("Europe/Berlin", "2026-10-25T22:59:59.900000", "2026-10-25T23:00:00", "2026-10-25"),
    # They go forward on 29 March, which has 23 hours.
    ("Europe/Berlin", "2026-03-28T22:59:59.900000", "2026-03-28T23:00:00", "2026-03-28"),
    ("Europe/Berlin", "2026-03-29T21:59:59.900000", "2026-03-29T22:00:00", "2026-03-29"),
]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def live_in(client: Client, zone: str) -> None:
    answer = client.patch("/api/v1/me", {"time_zone": zone}, content_type="application/json")
    assert answer.status_code == 200, answer.content


def remember(user: User, text: str, at: str) -> None:
    """Store an entry for a text that was sent, and left its context, at that moment."""
    user.refresh_from_db()
    conversation = new_conversation(user)
    [said] = say(conversation, text, at=moment(at))
    row = finished_compaction(conversation)
    record_entry(compaction=row, text=text, first_message_id=said.pk, last_message_id=said.pk, at=moment(at))


def told_by_day(client: Client) -> dict[str, list[str]]:
    days = [item["day"] for item in client.get(DAYS).json()["items"]]
    return {
        day: [entry["text"] for entry in client.get(f"{DAYS}/{day}").json()["entries"]]
        for day in sorted(days)
    }


@pytest.mark.parametrize(("zone", "last", "first", "day"), MIDNIGHTS, ids=lambda value: str(value)[:25])
def test_entries_just_before_midnight_and_at_midnight_belong_to_different_days(
    alice: User, api_client: Clients, zone: str, last: str, first: str, day: str
):
    client = api_client(alice)
    live_in(client, zone)
    remember(alice, "Before midnight.", last)
    remember(alice, "At midnight.", first)
    told = told_by_day(client)
    assert told.pop(day) == ["Before midnight."]
    assert list(told.values()) == [["At midnight."]]
    assert min(told) > day


@pytest.mark.parametrize(("zone", "last", "first", "day"), MIDNIGHTS, ids=lambda value: str(value)[:25])
def test_forgetting_a_day_includes_messages_up_to_its_last_moment(
    alice: User, api_client: Clients, zone: str, last: str, first: str, day: str
):
    client = api_client(alice)
    live_in(client, zone)
    for text, at in (("The heron stood in the reeds.", last), ("A tram rattled past.", first)):
        say(new_conversation(alice), text, at=moment(at))
    answer = client.post("/api/v1/memory/forget", {"day": day}, content_type="application/json")
    assert answer.status_code == 200, answer.content
    said = [row.parts for row in Message.objects.order_by("created_at")]
    assert said == [[], [{"type": "text", "text": "A tram rattled past."}]]
    again = client.post("/api/v1/memory/forget", {"day": day}, content_type="application/json")
    assert again.status_code == 404, "there is nothing left of it"


def test_a_user_who_moves_keeps_old_days_and_gets_new_ones_by_the_new_time_zone(
    alice: User, api_client: Clients
):
    client = api_client(alice)
    live_in(client, "Asia/Tokyo")
    remember(alice, "Said in Tokyo.", "2026-11-21T15:30:00")
    live_in(client, "America/New_York")
    remember(alice, "Said in New York.", "2026-11-21T16:30:00")
    told = {"2026-11-21": ["Said in New York."], "2026-11-22": ["Said in Tokyo."]}
    assert told_by_day(client) == told

    before: dict[str, Any] = client.get(f"{DAYS}/2026-11-22").json()
    edited = before["markdown"].replace("Said in Tokyo.", "Said in Kyoto.")
    written = client.put(f"{DAYS}/2026-11-22", {"markdown": edited}, content_type="application/json")
    assert written.status_code == 200, written.content
    assert told_by_day(client) == told | {"2026-11-22": ["Said in Kyoto."]}
    [entry] = written.json()["entries"]
    assert entry["created_at"] == "2026-11-21T15:30:00Z"
    assert entry["id"] == before["entries"][0]["id"]


@pytest.mark.mechanism("memory.day")
@pytest.mark.usefixtures("no_files")
def test_after_a_move_the_sweep_rewrites_the_files_with_the_new_local_time(
    alice: User, api_client: Clients
) -> None:
    client = api_client(alice)
    live_in(client, "Asia/Tokyo")
    remember(alice, "Said in Tokyo.", "2026-11-21T15:30:00")
    memory_files.sweep_unwritten()
    file = memory_files.day_path(alice.pk, date(2026, 11, 22))
    assert "## 00:30" in file.read_text()
    live_in(client, "Europe/Berlin")
    memory_files.sweep_unwritten()
    assert "## 16:30" in file.read_text()
    assert file.read_text() == client.get(f"{DAYS}/2026-11-22").json()["markdown"]
    assert StaleDay.objects.count() == 0
