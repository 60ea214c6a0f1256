"""Conversations, then the indexes of users, then those of scopes: who forgets takes them in this order, like everybody
who writes, so that no two wait for each other. SQLite has but one writer at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet

from chatapp.actions.forget_shared import unshare_entry
from chatapp.actions.forget_whole import forget_conversation, forget_everything
from chatapp.actions.search import index_entry
from chatapp.forgetting import forget_entry
from chatapp.models import Agent, Conversation, Event, MemoryEntry, SearchOwner, User
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)

SAID = "The gate code of the depot is 7731-heliotrope."


@pytest.fixture(autouse=True)
def several_writers() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("has one writer at a time: nobody waits for a second lock")


@pytest.fixture
def told(alice: User, bob: User) -> tuple[MemoryEntry, Conversation]:
    """What alice shares, and bob's chat that was told it and has learned it."""
    porter = Agent.objects.create(name="Porter", shares_memory=True)
    chats = [new_conversation(user) for user in (alice, bob)]
    Conversation.objects.update(scope=porter, shared_in=porter.pk)
    entries = [
        MemoryEntry.objects.create(
            user=chat.user,
            conversation=chat,
            text=SAID,
            day=NOW.date(),
            created_at=NOW,
            scope=porter,
            shared_in=porter.pk,
        )
        for chat in chats
    ]
    for entry in entries:
        index_entry(entry)
    say(chats[1], "What is the gate code?", SAID)
    recalled = {"type": "recall", "items": [{"source": {"kind": "entry", "entry_id": str(entries[0].pk)}}]}
    Event.objects.create(conversation=chats[1], seq=0, type="recall", payload=recalled, at=NOW)
    return entries[0], chats[1]


WAYS: dict[str, Callable[[MemoryEntry], object]] = {
    "an entry": lambda entry: forget_entry(entry.user, entry.pk, now=NOW),
    "its conversation": lambda entry: forget_conversation(
        user=entry.user, conversation_id=str(entry.conversation_id), now=NOW
    ),
    "everything": lambda entry: forget_everything(user=entry.user, now=NOW),
    "an operator": lambda entry: unshare_entry(entry_id=entry.pk, now=NOW),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_waits_for_a_conversation_holds_no_index(
    told: tuple[MemoryEntry, Conversation], way: str
) -> None:
    entry, chat = told
    held, free = Conversation.objects.filter(pk=chat.pk), SearchOwner.objects.all()
    check_order(lambda: WAYS[way](entry), held=held, free=free)


@pytest.mark.parametrize("whose", ["alice", "bob"])
@pytest.mark.parametrize("way", WAYS)
def test_who_waits_for_the_index_of_a_user_holds_none_of_a_scope(
    told: tuple[MemoryEntry, Conversation], way: str, whose: str
) -> None:
    entry, chat = told
    held = SearchOwner.objects.filter(user=entry.user if whose == "alice" else chat.user)
    check_order(lambda: WAYS[way](entry), held=held, free=SearchOwner.objects.filter(scope__isnull=False))


def check_order(
    forget: Callable[[], object], *, held: QuerySet[SearchOwner | Conversation], free: QuerySet[SearchOwner]
) -> None:
    """While this holds the ones, somebody who forgets waits, and has not taken the others."""
    failed: list[DatabaseError] = []

    def run() -> None:
        try:
            forget()
        except DatabaseError as error:
            failed.append(error)
        finally:
            connection.close()

    other = threading.Thread(target=run)
    try:
        with transaction.atomic():
            lock_at_once(held)
            other.start()
            while other.is_alive() and not somebody_waits():
                other.join(0.02)
            assert other.is_alive(), "it needs what is held"
            lock_at_once(free)
    finally:
        other.join()
    assert not failed


def lock_at_once(rows: QuerySet[Any]) -> None:
    """Fails where somebody else holds one of them."""
    assert list(rows.select_for_update(nowait=True).order_by("pk"))


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
        )
        return bool(cursor.fetchone()[0])
