"""A restart, crash or duplicate delivery at any step (extract, rows, file, index, vectors) leaves exactly one entry.
See also `memory_store/test_consolidating.py`, and for real kills `reliability/test_memory_writes_survive.py`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from uuid import UUID

import pytest
from django.db import IntegrityError

from chatapp.accounts.models import User
from chatapp.compaction import tasks as compaction_tasks
from chatapp.compaction.actions.compactions import (
    claim_compaction,
    complete_compaction,
    release_all_compactions,
)
from chatapp.compaction.models import Compaction
from chatapp.compaction.values import CompactionLease, FinishedSummary
from chatapp.conversations.models import Message
from chatapp.long_term import files as memory_files
from chatapp.long_term.models import MemoryEntry, StaleDay
from chatapp.operations import clock, tasks
from chatapp.realtime.models import Event
from chatapp.recall import tasks as recall_tasks
from chatapp.recall.actions.indexing import index_conversation, rebuild_index
from chatapp.recall.actions.vectors import DocumentVectors, begin_vectors, store_vectors
from chatapp.recall.models import SearchDocument, SearchVectors
from chatapp.recall.user_search import search_memory
from tests.context_engine.chatting import make_model
from tests.memory_store.rows import NOW, new_conversation, say
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

FACT = "My dog is called Rex and eats Pedigree-7."
FILLER = "We talk about the harbour and the price of bread for a long while, and nothing comes of it at all."


@pytest.fixture
def row(alice: User) -> Compaction:
    conversation = new_conversation(alice)
    say(conversation, FACT, "Noted.", *[FILLER] * 8)
    return Compaction.objects.create(
        conversation=conversation,
        branch=conversation.branch,
        first_position=0,
        last_position=9,
        message_count=10,
        kept_count=0,
        strategy="checkpoint",
        status="pending",
        budget_tokens=20_000,
        created_at=clock.now(),
    )


@pytest.fixture
def server() -> ModelServer:
    with ModelServer(summary_default=says("The user's dog Rex eats Pedigree-7.")) as answering:
        make_model(answering, name="Main", is_default=True)
        yield answering


def assert_once(user: User) -> None:
    """Check that rows, file and index contain the entry once, also after a sweep and after rebuilding."""
    for again in (
        lambda: None,
        tasks.sweep,
        lambda: rebuild_index(user.pk),
        lambda: memory_files.rebuild_files(user.pk),
    ):
        again()
        entry = MemoryEntry.objects.get(user=user)
        assert entry.written_at is not None
        text = memory_files.day_path(user.pk, entry.day).read_text()
        assert text.count(str(entry.pk)) == 1
        assert text.count("Pedigree-7") == entry.text.count("Pedigree-7") >= 1
        assert SearchDocument.objects.filter(source_id=entry.pk).count() == 1
        found = search_memory(user_id=user.pk, query="Pedigree-7", limit=10, now=NOW, zone=UTC)
        assert sum(item.entry_id == entry.pk for item in found) == 1
    assert not StaleDay.objects.exists()
    assert Compaction.objects.filter(status="done").count() == 1


def test_a_job_that_is_delivered_repeatedly_is_done_once(
    alice: User, row: Compaction, server: ModelServer
) -> None:
    for _ in range(3):
        compaction_tasks.compact(str(row.pk))
        recall_tasks.index_conversation(str(row.conversation_id))
    assert len(server.requests_of("summary")) == 1
    assert_once(alice)


def test_a_worker_that_died_before_calling_the_model_is_replaced(
    alice: User, row: Compaction, server: ModelServer
) -> None:
    assert claim_compaction(compaction_id=row.pk, holder="a dead worker", now=clock.now())
    compaction_tasks.compact(str(row.pk))
    assert not MemoryEntry.objects.exists(), "its lease lives on"
    release_all_compactions(now=clock.now())
    compaction_tasks.compact(str(row.pk))
    assert_once(alice)


@pytest.mark.parametrize("crashes_at", ["the rows", "the file"])
def test_the_next_worker_repairs_a_crash_between_two_steps(
    alice: User, row: Compaction, server: ModelServer, crashes_at: str
) -> None:
    crash: Callable[[UUID], None] = {"the rows": crash_in_rows, "the file": crash_at_file}[crashes_at]
    crash(row.pk)
    release_all_compactions(now=clock.now())
    compaction_tasks.compact(str(row.pk))
    tasks.sweep()
    assert_once(alice)


def crash_in_rows(compaction_id: UUID) -> None:
    """Let the last write of the transaction of checkpoint, ledger and entry fail; it is rolled back as a whole."""
    lease = claim_compaction(compaction_id=compaction_id, holder="a dead worker", now=clock.now())
    assert lease is not None
    row = Compaction.objects.get(pk=compaction_id).conversation
    in_the_way = Event.objects.create(conversation=row, seq=row.last_seq + 1, type="x", payload={}, at=NOW)
    with pytest.raises(IntegrityError):
        complete_in_part(lease)
    in_the_way.delete()
    assert not MemoryEntry.objects.exists()
    assert not SearchDocument.objects.exists()
    assert not Compaction.objects.filter(status="done").exists()


def complete_in_part(lease: CompactionLease) -> None:
    first = Message.objects.order_by("position")[0]
    result = FinishedSummary(
        summary=FACT,
        summary_tokens=9,
        tokens_after=9,
        entry_text=FACT,
        first_message_id=first.pk,
        last_message_id=first.pk,
        calls=(),
        repeated_entries=(),
    )
    complete_compaction(lease=lease, result=result, now=clock.now())


def crash_at_file(compaction_id: UUID) -> None:
    """Compact while the folder is not writable, so that the row exists without its file, which the sweep must write."""
    row = Compaction.objects.get(pk=compaction_id)
    folder = memory_files.user_folder(row.conversation.user_id)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    compaction_tasks.compact(str(compaction_id))
    entry = MemoryEntry.objects.get()
    assert entry.written_at is None
    folder.unlink()


def test_indexing_a_conversation_twice_indexes_each_message_once(
    alice: User, row: Compaction, server: ModelServer
) -> None:
    compaction_tasks.compact(str(row.pk))
    for _ in range(2):
        index_conversation(row.conversation_id)
    said = SearchDocument.objects.filter(kind=SearchDocument.Kind.MESSAGE)
    assert said.count() == said.values("source_id").distinct().count() == 10
    assert_once(alice)


def test_two_workers_that_made_the_same_vectors_store_them_once(
    alice: User, row: Compaction, server: ModelServer
) -> None:
    compaction_tasks.compact(str(row.pk))
    recall_tasks.index_conversation(str(row.conversation_id))
    wanted = [begin_vectors(user_id=alice.pk, model="test") for _ in range(2)]
    assert wanted[0] == wanted[1] == range(SearchDocument.objects.count())
    made = [
        store_vectors(
            user_id=alice.pk,
            model="test",
            ordinals=ordinals,
            documents=[DocumentVectors(ordinal, [[1.0] * 8]) for ordinal in ordinals],
        )
        for ordinals in wanted
    ]
    assert made == [True, False]
    assert SearchVectors.objects.count() == len(wanted[0])
    assert_once(alice)
