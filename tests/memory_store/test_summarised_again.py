"""Messages whose summary was undone are summarised again later, together with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.compaction import tasks as compaction_tasks
from chatapp.compaction.actions.compactions import undo_compaction
from chatapp.compaction.models import Compaction
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.recall.user_search import search_memory
from tests.context_engine.chatting import make_model
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "My dentist is Dr Quillfeather in Elm Street 14."
MORE = "My dog is called Rex and eats Pedigree-7."


@pytest.fixture(autouse=True)
def model() -> Iterator[None]:
    with ModelServer() as server:
        make_model(server, name="Main", is_default=True)
        yield


@pytest.fixture
def again(alice: User, model: None) -> Compaction:
    """Return a pending compaction of a whole conversation, whose first half has an entry of an undone compaction."""
    conversation = new_conversation(alice)
    said = say(conversation, FACT, "Noted.", MORE, "I see.")
    undone = finished_compaction(conversation)
    record_entry(
        compaction=undone,
        text=f"- {FACT}",
        first_message_id=said[0].pk,
        last_message_id=said[1].pk,
        at=NOW,
    )
    Compaction.objects.update(last_position=1)
    undo_compaction(user=alice, conversation_id=str(conversation.pk), compaction_id=str(undone.pk), now=NOW)
    row = finished_compaction(conversation)
    Compaction.objects.filter(pk=row.pk).update(status="pending", last_position=3, message_count=4)
    return row


def entries_found(user: User, query: str) -> list[str]:
    found = search_memory(user_id=user.pk, query=query, limit=10, now=NOW, zone=UTC)
    return [item.text for item in found if item.entry_id]


def texts() -> list[str]:
    return list(MemoryEntry.objects.order_by("pk").values_list("text", flat=True))


def undo(client: Client, row: Compaction, way: str = "undo") -> None:
    path = f"/api/v1/conversations/{row.conversation_id}/compactions/{row.pk}/{way}"
    answer = client.post(path)
    assert answer.status_code == 200, answer.content


@pytest.mark.mechanism("memory.again")
def test_an_unedited_entry_is_found_again_and_new_facts_become_a_new_entry(
    alice: User, again: Compaction
) -> None:
    assert entries_found(alice, "Quillfeather") == []
    compaction_tasks.compact(str(again.pk))
    assert texts() == [f"- {FACT}", f"- {MORE}"]
    assert entries_found(alice, "Quillfeather") == [f"- {FACT}"]
    assert entries_found(alice, "Pedigree-7") == [f"- {MORE}"]


@pytest.mark.mechanism("memory.again")
def test_two_spans_summarised_again_as_one_keep_each_fact_once(
    alice: User, api_client: Callable[[User], Client], again: Compaction
) -> None:
    said = list(again.conversation.messages.order_by("position"))
    second = finished_compaction(again.conversation, 2)
    record_entry(
        compaction=second,
        text=f"- {MORE}",
        first_message_id=said[2].pk,
        last_message_id=said[3].pk,
        at=NOW,
    )
    Compaction.objects.filter(pk=second.pk).update(last_position=3)
    undo(api_client(alice), second)
    assert entries_found(alice, "Pedigree-7") == []
    compaction_tasks.compact(str(again.pk))
    assert texts() == [f"- {FACT}", f"- {MORE}"]
    assert entries_found(alice, "Quillfeather") == [f"- {FACT}"]
    assert entries_found(alice, "Pedigree-7") == [f"- {MORE}"]


@pytest.mark.mechanism("memory.again")
def test_redoing_a_summary_restores_its_entry(
    alice: User, api_client: Callable[[User], Client], again: Compaction
) -> None:
    client = api_client(alice)
    compaction_tasks.compact(str(again.pk))
    undo(client, again)
    assert entries_found(alice, "Quillfeather") == []
    undo(client, again.conversation.compactions.exclude(pk=again.pk).get(), "redo")
    assert entries_found(alice, "Quillfeather") == [f"- {FACT}"]


@pytest.mark.mechanism("memory.again")
def test_one_span_summarised_again_as_two_keeps_each_fact_once(
    alice: User, api_client: Callable[[User], Client], again: Compaction
) -> None:
    compaction_tasks.compact(str(again.pk))
    undo(api_client(alice), again)
    for first in (0, 2):
        part = finished_compaction(again.conversation, first)
        Compaction.objects.filter(pk=part.pk).update(status="pending", last_position=first + 1)
        compaction_tasks.compact(str(part.pk))
    assert texts() == [f"- {FACT}", f"- {MORE}"]
    assert entries_found(alice, "Quillfeather") == [f"- {FACT}"]
    assert entries_found(alice, "Pedigree-7") == [f"- {MORE}"]


def test_clearing_the_context_makes_the_entry_of_an_undone_summary_searchable(
    alice: User, api_client: Callable[[User], Client], again: Compaction
) -> None:
    again.delete()
    conversation = again.conversation
    answer = api_client(alice).post(f"/api/v1/conversations/{conversation.pk}/context/clear")
    assert answer.status_code == 200, answer.content
    assert entries_found(alice, "Quillfeather") == [f"- {FACT}"]


def test_new_facts_wait_for_approval_if_the_user_reviews_memory(alice: User, again: Compaction) -> None:
    User.objects.update(reviews_memory=True)
    compaction_tasks.compact(str(again.pk))
    states = MemoryEntry.objects.order_by("pk").values_list("text", "state")
    assert list(states) == [(f"- {FACT}", "kept"), (f"- {MORE}", "proposed")]


def test_new_facts_belong_to_the_day_on_which_they_are_learned(alice: User, again: Compaction) -> None:
    then = datetime(2024, 1, 1, 10, tzinfo=UTC)
    MemoryEntry.objects.update(day=then.date(), created_at=then)
    before = clock.now()
    compaction_tasks.compact(str(again.pk))
    days = dict(MemoryEntry.objects.values_list("text", "day"))
    assert days[f"- {FACT}"] == then.date()
    assert days[f"- {MORE}"] in {before.date(), clock.now().date()}


@pytest.mark.mechanism("memory.again")
def test_a_corrected_fact_is_not_learned_again_beside_its_correction(
    alice: User, api_client: Callable[[User], Client], again: Compaction
) -> None:
    corrected = FACT.replace("14", "15")
    path = f"/api/v1/memory/entries/{MemoryEntry.objects.get().pk}"
    api_client(alice).patch(path, {"text": corrected}, content_type="application/json")
    compaction_tasks.compact(str(again.pk))
    assert texts() == [corrected, f"- {MORE}"]
