"""The trash: its conversations are shown nowhere else, can be restored unchanged, and are deleted after a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.forgetting.accounts import delete_account
from chatapp.forgetting.models import Removal, TrashedConversation
from chatapp.forgetting.services import forget_all, forget_day, forget_message
from chatapp.forgetting.trash.services import (
    clean_up_idle,
    delete_from_trash,
    move_to_trash,
    purge_due,
    restore,
)
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.tombstones import make_tombstones, store_tombstones
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.selectors.tombstones import tombstones_about
from chatapp.operations import clock
from chatapp.operations.database.work_budget import Pace
from chatapp.operations.errors import Conflict, NotFound
from chatapp.recall.actions.indexing import index_conversation
from chatapp.runs.models import Run
from tests.forgetting.everywhere import files_with, tables_with
from tests.forgetting.lives import SECRET, Life, live
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)

Clients = Callable[..., Client]
API = "/api/v1"
DAYS = 30
LATER = NOW + timedelta(days=DAYS, minutes=1)


def trash(life: Life) -> None:
    move_to_trash(life.user, str(life.conversation.pk), days=DAYS, now=NOW)


def page(client: Client) -> list[dict[str, Any]]:
    answer = client.get(f"{API}/trash")
    assert answer.status_code == 200
    return list(answer.json()["items"])


@pytest.mark.mechanism("forgetting.trash")
def test_a_trashed_conversation_is_shown_nowhere_else_and_is_restored_unchanged(
    alice: User, charlie: User, api_client: Clients
) -> None:
    life = live(alice)
    home = str(life.conversation.pk)
    client, stranger = api_client(alice), api_client(charlie)
    messages = client.get(f"{API}/conversations/{home}/messages").json()
    hits = client.get(f"{API}/memory/search", {"q": "favourite colour"}).json()["items"]
    assert any(hit["source"]["kind"] == "message" for hit in hits)
    assert client.post(f"{API}/conversations/{home}/trash").status_code == 204

    assert client.get(f"{API}/conversations/{home}").status_code == 404
    assert client.post(f"{API}/conversations/{home}/trash").status_code == 404
    assert home not in {row["id"] for row in client.get(f"{API}/conversations").json()["items"]}
    left = client.get(f"{API}/memory/search", {"q": "favourite colour"}).json()["items"]
    assert {hit["source"]["kind"] for hit in left} == {"entry"}
    assert home not in memory_files.day_path(alice.pk, NOW.date()).read_text()
    [item] = page(client)
    assert (item["id"], item["reason"], item["message_count"]) == (home, "by_hand", 6)
    assert not Removal.objects.exists()

    assert page(stranger) == []
    assert stranger.post(f"{API}/trash/{home}/restore").status_code == 404
    assert stranger.delete(f"{API}/trash/{home}").status_code == 404

    assert client.post(f"{API}/trash/{home}/restore").json()["id"] == home
    assert page(client) == []
    assert client.get(f"{API}/conversations/{home}/messages").json() == messages
    life.entry.refresh_from_db()
    assert str(life.entry.conversation_id) == home
    assert home in memory_files.day_path(alice.pk, NOW.date()).read_text()
    index_conversation(life.conversation.pk)
    again = client.get(f"{API}/memory/search", {"q": "favourite colour"}).json()["items"]
    assert [hit["source"] for hit in again] == [hit["source"] for hit in hits]


@pytest.mark.mechanism("forgetting.trash")
@pytest.mark.usefixtures("no_files")
@pytest.mark.parametrize("way", ["one", "all", "time"])
def test_a_conversation_deleted_from_the_trash_leaves_nothing(
    alice: User, api_client: Clients, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    life = live(alice)
    home = str(life.conversation.pk)
    trash(life)
    monkeypatch.setattr(clock, "now", lambda: NOW + timedelta(hours=1))
    client = api_client(alice)
    if way == "one":
        assert client.delete(f"{API}/trash/{home}").status_code == 204
    elif way == "all":
        assert client.delete(f"{API}/trash").status_code == 204
        assert page(client) == []
        assert client.post(f"{API}/trash/{home}/restore").status_code == 404
        purge_due(now=clock.now())
    else:
        assert purge_due(now=NOW + timedelta(days=DAYS) - timedelta(minutes=1)) == 0
        purge_due(now=LATER)
    assert tables_with(SECRET) == []
    assert files_with(SECRET) == []
    assert not TrashedConversation.objects.exists()


@pytest.mark.mechanism("cowagent.retention")
def test_the_clean_up_moves_conversations_to_the_trash_and_keeps_memory(alice: User) -> None:
    life = live(alice)
    Conversation.objects.filter(pk=life.conversation.pk).update(last_activity_at=NOW - timedelta(days=40))
    temporary = new_conversation(alice, at=NOW - timedelta(days=40), temporary=True)
    assert clean_up_idle(now=NOW, days=30, trash_days=DAYS) == 2
    row = TrashedConversation.objects.get()
    assert (row.pk, row.reason) == (life.conversation.pk, "idle")
    assert not Conversation.with_unowned.filter(pk=temporary.pk).exists(), "a temporary one waits nowhere"
    back = restore(alice, str(life.conversation.pk), now=NOW)
    assert back.last_activity_at == NOW
    assert clean_up_idle(now=NOW, days=30, trash_days=DAYS) == 0, "it is as if used now"
    Conversation.objects.filter(pk=life.conversation.pk).update(last_activity_at=NOW - timedelta(days=40))
    clean_up_idle(now=NOW, days=30, trash_days=DAYS)
    purge_due(now=LATER)
    assert not Message.objects.filter(conversation=life.conversation).exists()
    assert SECRET in MemoryEntry.objects.get().text


def test_a_conversation_restored_shortly_before_it_expires_counts_as_used_now(
    alice: User, settings: Any
) -> None:
    settings.RETENTION_DAYS = 30
    life = live(alice)
    used = NOW - timedelta(days=30) + timedelta(minutes=1)
    Conversation.objects.filter(pk=life.conversation.pk).update(last_activity_at=used)
    trash(life)
    later = NOW + timedelta(hours=1)
    restore(alice, str(life.conversation.pk), now=later)
    assert clean_up_idle(now=later, days=30, trash_days=DAYS) == 0


def test_moving_to_the_trash_deletes_at_once_if_there_is_no_trash(
    alice: User, api_client: Clients, settings: Any
) -> None:
    settings.TRASH_DAYS = 0
    row = new_conversation(alice)
    assert api_client(alice).post(f"{API}/conversations/{row.pk}/trash").status_code == 204
    assert not Conversation.with_unowned.exists()


def test_a_temporary_conversation_cannot_be_moved_to_the_trash(alice: User, api_client: Clients) -> None:
    row = new_conversation(alice, temporary=True)
    assert api_client(alice).post(f"{API}/conversations/{row.pk}/trash").status_code == 409


def test_an_answer_in_progress_is_stopped_and_stays_stopped_after_restoring(
    alice: User, api_client: Clients
) -> None:
    conversation = new_conversation(alice)
    question, answer = say(conversation, "Go on", "As far as this")
    Message.objects.filter(pk=answer.pk).update(status="streaming")
    run = Run.objects.create(
        conversation=conversation,
        user=alice,
        question=question,
        answer=answer,
        status="running",
        created_at=NOW,
    )
    move_to_trash(alice, str(conversation.pk), days=DAYS, now=NOW)
    run.refresh_from_db()
    assert (run.status, run.fence) == ("stopped", 1)
    restore(alice, str(conversation.pk), now=NOW)
    client, home = api_client(alice), f"{API}/conversations/{conversation.pk}"
    shown = client.get(f"{home}/messages").json()["items"][-1]
    assert (shown["status"], shown["content"]) == ("stopped", "As far as this")
    assert client.get(home).json()["active_run"] is None


@pytest.mark.mechanism("forgetting.trash")
def test_text_forgotten_meanwhile_is_not_restored_from_the_trash(
    alice: User, api_client: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = live(alice)
    again = new_conversation(alice, f"My favourite colour is {SECRET}.")
    say(again, f"My favourite colour is {SECRET}.", "I know.", "The ferry leaves at nine.", "It does.")
    move_to_trash(alice, str(again.pk), days=DAYS, now=NOW)
    move_to_trash(alice, str(life.elsewhere.pk), days=DAYS, now=NOW)
    monkeypatch.setattr(clock, "now", lambda: NOW)
    assert SECRET in str(page(api_client(alice)))
    forget_message(alice, life.told.pk, now=NOW + timedelta(hours=1))
    monkeypatch.setattr(clock, "now", lambda: NOW + timedelta(hours=1))
    assert SECRET not in str(page(api_client(alice)))
    for conversation in (again, life.elsewhere):
        restore(alice, str(conversation.pk), now=NOW + timedelta(hours=2))
    texts = "".join(str(parts) for parts in Message.objects.values_list("parts", flat=True))
    assert SECRET not in texts
    assert "The ferry leaves at nine." in texts


def test_titles_in_the_trash_are_checked_without_reading_all_tombstones(
    alice: User, api_client: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)
    short, long = "Blue heron in the boathouse", " ".join(f"Heron{number}" for number in range(12))
    for title in (short, long, "Ferries to Bergen"):
        move_to_trash(alice, str(new_conversation(alice, title).pk), days=DAYS, now=NOW)
    store_tombstones(
        make_tombstones(alice.pk, [f"Otter{number} sleeps in holt{number}." for number in range(300)], NOW)
    )
    store_tombstones(make_tombstones(alice.pk, ["In the boathouse: a blue heron.", f"{long} also."], NOW))
    assert {one["title"] for one in page(api_client(alice))} == {"", "Ferries to Bergen"}
    with CaptureQueriesContext(connection) as asked:
        known = tombstones_about(alice.pk, [short, "Ferries to Bergen"])
    assert known.cover(short)
    assert not known.cover("Otter7 sleeps in holt7."), "it is not read"
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            plan = str(cursor.execute(f"EXPLAIN QUERY PLAN {asked[-1]['sql']}").fetchall())
        assert "tombstone_by_first_word" in plan
        assert "SCAN" not in plan


@pytest.mark.parametrize("what", ["everything", "day", "account"])
@pytest.mark.usefixtures("no_files")
def test_forgetting_everything_or_a_day_or_an_account_includes_the_trash(alice: User, what: str) -> None:
    life = live(alice)
    trash(life)
    if what != "day":  # this conversation is from another day
        move_to_trash(alice, str(life.elsewhere.pk), days=DAYS, now=NOW)
    match what:
        case "everything":
            forget_all(alice, now=NOW)
        case "day":
            forget_day(alice, NOW.date(), now=NOW)
        case _:
            delete_account(alice, now=NOW)
    assert not TrashedConversation.objects.exists()
    assert tables_with(SECRET) == []
    assert files_with(SECRET) == []


def test_moving_a_large_conversation_continues_in_the_background_and_blocks_restoring(alice: User) -> None:
    life = live(alice)
    at_once = Pace(0.0, sleep=lambda _: None)
    move_to_trash(alice, str(life.conversation.pk), days=DAYS, now=NOW, pace=at_once)
    removal = Removal.objects.get()
    Removal.objects.update(lease_expires_at=NOW + Removal.LEASE)
    with pytest.raises(Conflict):
        restore(alice, str(life.conversation.pk), now=NOW)
    assert not Conversation.objects.filter(pk=life.conversation.pk).exists()
    Removal.objects.filter(pk=removal.pk).update(lease_expires_at=NOW - timedelta(days=1))
    restore(alice, str(life.conversation.pk), now=NOW)
    assert Conversation.objects.filter(pk=life.conversation.pk).exists()
    move_to_trash(alice, str(life.conversation.pk), days=DAYS, now=NOW, pace=at_once)
    delete_from_trash(alice, life.conversation.pk, now=NOW)
    assert not Message.objects.filter(conversation=life.conversation).exists()
    with pytest.raises(NotFound):
        delete_from_trash(alice, life.conversation.pk, now=NOW)
