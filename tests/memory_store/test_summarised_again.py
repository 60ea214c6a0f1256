"""After an undo the messages leave the context later, and with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.test import Client

from chatapp import tasks
from chatapp.actions.memory import record_entry
from chatapp.models import Compaction, MemoryEntry, User
from chatapp.remembering.recall import search_memory
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
    """Waits, of all that was said; the first half was an entry, whose summary was undone."""
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
    Compaction.objects.update(status="undone", last_position=1)
    row = finished_compaction(conversation)
    Compaction.objects.filter(pk=row.pk).update(status="pending", last_position=3, message_count=4)
    return row


def test_what_nobody_edited_becomes_one_entry_with_a_history(alice: User, again: Compaction) -> None:
    tasks.compact(str(again.pk))
    entry = MemoryEntry.objects.get()
    assert entry.text == f"- {FACT}\n- {MORE}"
    assert [row.text for row in entry.revisions.all()] == [f"- {FACT}"]
    positions = again.conversation.messages.in_bulk([entry.first_message_id, entry.last_message_id])
    assert sorted(row.position for row in positions.values()) == [0, 3]
    found = search_memory(user_id=alice.pk, query="Quillfeather", limit=10, now=NOW)
    assert [item.entry_id for item in found if item.entry_id] == [entry.pk]


def test_what_was_corrected_is_not_learned_again_beside_the_correction(
    alice: User, api_client: Callable[[User], Client], again: Compaction
) -> None:
    corrected = FACT.replace("14", "15")
    path = f"/api/v1/memory/entries/{MemoryEntry.objects.get().pk}"
    api_client(alice).patch(path, {"text": corrected}, content_type="application/json")
    tasks.compact(str(again.pk))
    texts = MemoryEntry.objects.order_by("pk").values_list("text", flat=True)
    assert list(texts) == [corrected, f"- {MORE}"]
