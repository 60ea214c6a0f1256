"""Shared entries are found however many there are, and the shared index follows every change of an entry."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import numpy as np
import pytest
from django.core.management import call_command

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.forgetting.services import forget_all, forget_entry, take_out_of_shared
from chatapp.forgetting.tasks import delete_abandoned_indexes
from chatapp.long_term.actions.entries import rewrite_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions.indexing import SEAL_FROM, index_entries, index_entry, rebuild_index
from chatapp.recall.index_format import NO_ORDINAL
from chatapp.recall.models import SearchDocument, SearchOwner, SearchPosting
from chatapp.recall.selectors.user_index import open_index
from chatapp.recall.user_search import search_memory
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db

CODE = "The gate code of the depot is 7731."
SECOND = "The depot has two gates."


@pytest.fixture
def porter() -> Agent:
    return Agent.objects.create(name="Porter", shares_memory=True)


def write(user: User, agent: Agent, *texts: str) -> list[MemoryEntry]:
    return MemoryEntry.objects.bulk_create(
        MemoryEntry(user=user, scope=agent, shared_in=agent.pk, text=text, day=NOW.date(), created_at=NOW)
        for text in texts
    )


def share(user: User, agent: Agent, *texts: str) -> list[MemoryEntry]:
    entries = write(user, agent, *texts)
    for entry in entries:
        index_entry(entry)
    return entries


def found(user: User, agent: Agent, query: str, limit: int = 10) -> list[str]:
    items = search_memory(user_id=user.pk, query=query, limit=limit, now=NOW, zone=UTC, scope_id=agent.pk)
    return [item.text for item in items]


@pytest.mark.mechanism("memory.shared-index")
def test_old_and_long_entries_are_found_among_a_thousand(
    alice: User, bob: User, charlie: User, porter: Agent
) -> None:
    share(bob, porter, CODE)
    other = Agent.objects.create(name="Janitor", shares_memory=True)
    share(bob, other, "The gate code of the cellar is 9152.")
    for user in (bob, charlie):
        orders = (f"Order {number} of {user.email} is due." for number in range(520))
        index_entries(user.pk, write(user, porter, *orders))
    long = "Nothing of it matters. " * 400
    share(charlie, porter, f"{long}The caretaker is called Heliotrope. {long}")
    share(bob, porter, "The ladder stands behind the shed.")
    owner = SearchOwner.objects.get(scope=porter)
    assert owner.sealed_ordinal > 512, "sealed, and not sealed yet"
    assert owner.document_count > 1_040
    assert found(alice, porter, "What is the gate code of the depot?")[0] == CODE
    assert found(alice, porter, "ladder") == ["The ladder stands behind the shed."]
    assert "Heliotrope" in found(alice, porter, "Who is the caretaker?")[0]
    assert "9152" not in str(found(alice, porter, "What is the gate code of the cellar?"))

    say(new_conversation(alice), "Hello.", "Hello!")
    index = open_index(alice.pk, porter.pk)
    previous = index.columns.previous[index.shared.first :]
    assert index.shared.first == 2
    pieces = np.flatnonzero(previous != NO_ORDINAL)
    assert len(pieces) > 0
    assert list(previous[pieces]) == list(pieces + index.shared.first - 1), "each follows the one before it"


@pytest.mark.mechanism("memory.shared-index")
def test_the_shared_index_follows_changes_of_entries(alice: User, bob: User, porter: Agent) -> None:
    changed, forgotten, taken_out, kept = share(
        bob, porter, "The lamp is red.", "The heron is grey.", "The vase is celadon.", CODE
    )
    rewrite_entry(changed, "The lamp is green.", MemoryEntry.Author.USER)
    assert found(alice, porter, "green") == ["The lamp is green."]
    assert found(alice, porter, "red") == []
    forget_entry(bob, forgotten.pk, now=NOW)
    assert found(alice, porter, "heron") == []
    take_out_of_shared(taken_out.pk, now=NOW)
    assert found(alice, porter, "celadon") == []
    assert [item.text for item in search_memory(user_id=bob.pk, query="celadon", limit=5, now=NOW, zone=UTC)]
    shared = SearchDocument.objects.filter(owner__scope=porter)
    assert set(shared.values_list("source_id", flat=True)) == {changed.pk, kept.pk}
    assert not shared.exclude(conversation=None).exists(), "nor where it was said"
    forget_all(bob, now=NOW)
    assert not shared.exists()


@pytest.mark.mechanism("memory.shared-index")
def test_rebuilding_gives_the_same_results(alice: User, bob: User, charlie: User, porter: Agent) -> None:
    share(bob, porter, CODE)
    index_entries(bob.pk, write(bob, porter, *(f"Order {number} is due." for number in range(SEAL_FROM))))
    share(charlie, porter, SECOND)
    before = sorted(found(alice, porter, "gates of the depot"))
    postings = SearchPosting.objects.filter(owner__scope=porter).count()
    rebuild_index(bob.pk)
    assert sorted(found(alice, porter, "gates of the depot")) == before == sorted([CODE, SECOND])
    call_command("rebuild_memory")
    assert sorted(found(alice, porter, "gates of the depot")) == before
    assert SearchPosting.objects.filter(owner__scope=porter).count() == postings > 0


def test_deleting_an_agent_leaves_its_shared_index_to_a_worker(
    bob: User, porter: Agent, django_capture_on_commit_callbacks: Any
) -> None:
    share(bob, porter, CODE)
    with django_capture_on_commit_callbacks() as callbacks:
        porter.delete()
    woken = [call.args[0] for call in callbacks if getattr(call, "args", None)]
    assert woken == ["chatapp.forgetting.tasks.delete_abandoned_indexes"]
    assert SearchDocument.objects.filter(owner__user=None).exists()
    delete_abandoned_indexes("")
    assert not SearchOwner.objects.filter(user=None).exists()
    assert [
        item.text for item in search_memory(user_id=bob.pk, query="depot", limit=5, now=NOW, zone=UTC)
    ] == [CODE]
