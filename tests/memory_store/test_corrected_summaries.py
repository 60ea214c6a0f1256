"""Correcting a summary corrects the entry that was made from it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.compaction.models import Compaction
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions.claims import store_superseded_pairs
from chatapp.recall.models import StoredClaim
from chatapp.recall.selectors.claims import StatementPlace, fold_sentence
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

Clients = Callable[[User], Client]
ORDER = "My order is ORD-65 from Quillfeather."
DOG = "My dog is called Rex and eats Pedigree-7."
TOLD = "The order of the user is ORD-65 at Quillfeather. It arrives on 3 May."


@pytest.fixture
def row(alice: User) -> Compaction:
    conversation = new_conversation(alice)
    said = say(conversation, ORDER, "Noted.", DOG, "I see.")
    row = finished_compaction(conversation, summary=TOLD)
    record_entry(
        compaction=row,
        text=f"{TOLD}\n\n- {ORDER}\n- {DOG}",
        first_message_id=said[0].pk,
        last_message_id=said[-1].pk,
        at=NOW,
    )
    return row


def correct(client: Client, row: Compaction, summary: str) -> int:
    path = f"/api/v1/conversations/{row.conversation_id}/compactions/{row.pk}"
    return client.patch(path, {"summary": summary}, content_type="application/json").status_code


def found(client: Client, query: str) -> list[str]:
    items = client.get("/api/v1/memory/search", {"q": query}).json()["items"]
    return [item["text"] for item in items if item["source"].get("entry_id")]


@pytest.mark.mechanism("memory.edited-summary")
def test_statements_removed_from_a_summary_are_removed_from_its_entry(
    alice: User, api_client: Clients, row: Compaction
) -> None:
    client = api_client(alice)
    assert (
        correct(client, row, "The order of the user is ORD-66 at Quillfeather. It arrives on 3 May.") == 200
    )
    entry = MemoryEntry.objects.get()
    assert "ORD-65" not in entry.text
    assert DOG in entry.text
    assert entry.text.count("ORD-66") == entry.text.count("arrives on 3 May") == 1
    assert found(client, "ORD-66")
    assert "ORD-65" not in str(found(client, "ORD-65"))
    history = client.get(f"/api/v1/memory/entries/{entry.pk}/history").json()["items"]
    assert ["ORD-65" in item["text"] for item in history] == [False, True]


def test_only_the_entry_of_the_summary_is_corrected_and_only_by_its_user(
    alice: User, bob: User, api_client: Clients, row: Compaction
) -> None:
    conversation = new_conversation(alice)
    [said] = say(conversation, ORDER)
    other = record_entry(
        compaction=finished_compaction(conversation, summary=TOLD),
        text=TOLD,
        first_message_id=said.pk,
        last_message_id=said.pk,
        at=NOW,
    )
    assert other is not None
    assert correct(api_client(bob), row, "Nothing is ordered.") == 404
    assert correct(api_client(alice), row, "Nothing is ordered.") == 200
    other.refresh_from_db()
    assert other.text == TOLD
    [corrected] = MemoryEntry.objects.exclude(pk=other.pk)
    assert corrected.text == f"- {DOG}\nNothing is ordered."


@pytest.mark.mechanism("memory.changing-facts")
def test_a_superseded_statement_stays_marked_after_a_correction_moved_it(
    alice: User, api_client: Clients, row: Compaction
) -> None:
    entry = MemoryEntry.objects.get()
    newer = "My dog Rex eats nothing but carrots now."
    [said] = say(new_conversation(alice), newer, at=NOW + timedelta(days=1))
    start = entry.text.index(f"- {DOG}")
    older = StatementPlace(
        fold_sentence(DOG), start, start + len(f"- {DOG}"), NOW - timedelta(days=1), entry_id=entry.pk
    )
    store_superseded_pairs(
        alice.pk, [(older, StatementPlace(fold_sentence(newer), 0, len(newer), NOW, message_id=said.pk))]
    )
    client = api_client(alice)
    assert correct(client, row, "Nothing is ordered.") == 200
    claim = StoredClaim.objects.get(entry=entry)
    entry.refresh_from_db()
    assert entry.text[claim.start : claim.end] == f"- {DOG}"
    [day] = client.get(f"/api/v1/memory/days/{entry.day}").json()["entries"]
    assert [one["superseded_by"] for one in day["superseded"]] == [newer]
