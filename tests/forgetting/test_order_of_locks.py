"""Forgetting locks in the same order as all writers, or they could deadlock: consolidations, conversations, entries,
indexes of users, indexes of scopes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from chatapp.accounts.actions import delete_user
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.compaction.actions.compactions import claim_compaction, complete_compaction
from chatapp.compaction.models import Compaction
from chatapp.compaction.values import FinishedSummary
from chatapp.conversations.models import Conversation, Folder, Message
from chatapp.files.actions import create_attachment
from chatapp.files.models import Attachment
from chatapp.forgetting.actions import forget_all
from chatapp.forgetting.actions.forget_all import forget_everything, unshare_entry
from chatapp.forgetting.models import ForgetReceipt, Tombstone
from chatapp.forgetting.services import delete_file, forget_chosen, forget_entry, forget_whole_conversation
from chatapp.forgetting.trash.actions import take_if_idle
from chatapp.forgetting.trash.services import move_to_trash, restore
from chatapp.long_term.actions.consolidations import NewProfile, claim_consolidation, complete_consolidation
from chatapp.long_term.actions.days import DaySection
from chatapp.long_term.actions.entries import note_sources
from chatapp.long_term.actions.tombstones import (
    lift_requested,
    lift_tombstones,
    make_tombstones,
    store_tombstones,
)
from chatapp.long_term.changes import rewrite_day
from chatapp.long_term.models import Consolidation, MemoryEntry, Profile
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.work_budget import PIECE
from chatapp.operations.models import ForgettingCount
from chatapp.providers.models import ModelConfig
from chatapp.recall.actions.indexing import (
    delete_index,
    delete_shared_indexes,
    index_conversation,
    index_entry,
)
from chatapp.recall.actions.removal import delete_documents, documents_made_of
from chatapp.recall.actions.sources import note_read
from chatapp.recall.models import SearchDocument, SearchOwner
from chatapp.runs.actions.runs import Lease, renew_leases
from chatapp.runs.models import Run
from tests.blocking import check_order, lock_at_once, somebody_waits
from tests.forgetting.everywhere import tables_with
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

# SQLite allows one writer at a time, so nobody waits for a second lock.
pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]

SAID = "The gate code of the depot is 7731-heliotrope."


@pytest.fixture
def told(alice: User, bob: User) -> tuple[MemoryEntry, Conversation]:
    """Return alice's shared entry, and bob's older conversation, which recalled the entry and learned it again."""
    porter = Agent.objects.create(name="Porter", shares_memory=True)
    chats = [new_conversation(user) for user in (bob, alice)][::-1]
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
    question, answer = say(chats[1], "What is the gate code?", SAID)
    run = Run.objects.create(
        conversation=chats[1],
        user=bob,
        question=question,
        answer=answer,
        status="complete",
        created_at=NOW,
    )
    note_read(run.pk, [entries[0].pk])
    MemoryEntry.objects.filter(pk=entries[1].pk).update(first_message_id=answer.pk, last_message_id=answer.pk)
    return entries[0], chats[1]


WAYS: dict[str, Callable[[MemoryEntry], object]] = {
    "an entry": lambda entry: forget_entry(entry.user, entry.pk, now=NOW),
    "its conversation": lambda entry: forget_whole_conversation(
        entry.user, str(entry.conversation_id), now=NOW
    ),
    "everything": lambda entry: forget_everything(user=entry.user, now=NOW),
    "an operator": lambda entry: unshare_entry(entry_id=entry.pk, now=NOW),
    "a day that says something else": lambda entry: rewrite_day(
        user=entry.user, day=entry.day, sections=[DaySection(None, "It rains.")], version=None, now=NOW
    ),
}


@pytest.mark.parametrize("way", [way for way in WAYS if way != "its conversation"])  # deleted by then
def test_waiting_for_a_conversation_lock_holds_no_later_lock(
    told: tuple[MemoryEntry, Conversation], way: str
) -> None:
    entry, chat = told
    held, later = Conversation.objects.filter(pk=chat.pk), Conversation.objects.filter(pk__gt=chat.pk)
    check_order(
        lambda: WAYS[way](entry),
        held,
        later,
        MemoryEntry.objects.filter(pk=entry.pk),
        SearchOwner.objects.all(),
    )


@pytest.mark.mechanism("forgetting.locks")
@pytest.mark.parametrize("way", WAYS)
def test_waiting_for_an_entry_lock_holds_no_index_lock(
    told: tuple[MemoryEntry, Conversation], way: str
) -> None:
    entry, _ = told
    check_order(lambda: WAYS[way](entry), MemoryEntry.objects.filter(pk=entry.pk), SearchOwner.objects.all())


@pytest.mark.parametrize("whose", ["alice", "bob"])
@pytest.mark.parametrize("way", WAYS)
def test_waiting_for_a_consolidation_lock_holds_no_conversation_or_entry_lock(
    told: tuple[MemoryEntry, Conversation], way: str, whose: str
) -> None:
    """The end of a consolidation locks the entries it has read."""
    entry, chat = told
    reader = entry.user if whose == "alice" else chat.user
    under_way = Consolidation.objects.create(user=reader, status="running", created_at=NOW)
    held = Consolidation.objects.filter(pk=under_way.pk)
    check_order(lambda: WAYS[way](entry), held, Conversation.objects.all(), MemoryEntry.objects.all())


@pytest.mark.parametrize("whose", ["alice", "bob"])
@pytest.mark.parametrize("way", WAYS)
def test_waiting_for_the_index_lock_of_a_user_holds_no_index_lock_of_a_scope(
    told: tuple[MemoryEntry, Conversation], way: str, whose: str
) -> None:
    entry, chat = told
    held = SearchOwner.objects.filter(user=entry.user if whose == "alice" else chat.user)
    check_order(lambda: WAYS[way](entry), held, SearchOwner.objects.filter(scope__isnull=False))


@pytest.mark.mechanism("forgetting.locks")
def test_forgetting_everything_waits_for_a_new_conversation_without_the_index_lock(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer of the conversation holds its lock and waits for the index."""
    index_entry(MemoryEntry.objects.create(user=alice, day=NOW.date(), text="Tea.", created_at=NOW))
    chats: list[Conversation] = []
    is_made, is_held = threading.Event(), threading.Event()
    delete_uploads = forget_all._delete_uploads

    def begin_one(*given: Any) -> Any:
        if not is_made.is_set():
            chats.append(new_conversation(alice))
            say(chats[0], SAID)
            index_conversation(chats[0].pk)
            is_made.set()
            is_held.wait()
        return delete_uploads(*given)

    monkeypatch.setattr(forget_all, "_delete_uploads", begin_one)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            forget_everything(user=alice, now=NOW)
        except DatabaseError as error:
            failed.append(error)
        finally:
            connection.close()

    forgetting = threading.Thread(target=run)
    forgetting.start()
    is_made.wait()
    try:
        with transaction.atomic():
            lock_at_once(Conversation.objects.filter(pk=chats[0].pk))
            is_held.set()
            while forgetting.is_alive() and not somebody_waits():
                forgetting.join(0.02)
            lock_at_once(SearchOwner.objects.filter(user=alice))
    finally:
        is_held.set()
        forgetting.join()
    assert not failed


@pytest.mark.mechanism("forgetting.locks")
def test_a_consolidation_is_not_claimed_while_its_user_forgets(alice: User) -> None:
    """Otherwise the consolidation would write text to the profile that was forgotten meanwhile."""
    ForgettingCount.objects.create(pk=alice.pk)
    row = Consolidation.objects.create(user=alice, status="pending", created_at=NOW)
    check_order(
        lambda: claim_consolidation(consolidation_id=row.pk, now=NOW),
        ForgettingCount.objects.all(),
        Consolidation.objects.all(),
    )
    row.refresh_from_db()
    assert row.status == "running"


def test_a_summary_that_repeats_an_entry_waits_for_the_entry_without_the_index_lock(
    told: tuple[MemoryEntry, Conversation], bob: User
) -> None:
    entry, _ = told
    chat = new_conversation(bob)
    first, last = say(chat, SAID, "Noted.")
    pending = finished_compaction(chat)
    Compaction.objects.filter(pk=pending.pk).update(status="pending")
    lease = claim_compaction(compaction_id=pending.pk, holder="a worker", now=NOW)
    assert lease is not None
    known = MemoryEntry.objects.exclude(pk=entry.pk)
    summary = FinishedSummary(
        summary=SAID,
        summary_tokens=9,
        tokens_after=9,
        entry_text="It rains.",
        first_message_id=first.pk,
        last_message_id=last.pk,
        calls=(),
        repeated_entries=[str(row.pk) for row in known],
    )
    indexes = SearchOwner.objects.filter(user=bob)
    check_order(lambda: complete_compaction(lease=lease, result=summary, now=NOW), known.all(), indexes)


def test_a_summary_of_a_span_with_an_entry_locks_that_entry_before_a_later_one(
    earlier_of_a_later_time: tuple[MemoryEntry, MemoryEntry], alice: User
) -> None:
    """The summary repeats the later entry, and a consolidation locks both."""
    first, second = earlier_of_a_later_time
    chat = new_conversation(alice)
    asked, answered = say(chat, "Tea.", "Noted.")
    undone = finished_compaction(chat)
    Compaction.objects.filter(pk=undone.pk).update(status="undone")
    pending = finished_compaction(chat)
    Compaction.objects.filter(pk=pending.pk).update(status="pending")
    MemoryEntry.objects.filter(pk=first.pk).update(compaction=undone, conversation=chat)
    lease = claim_compaction(compaction_id=pending.pk, holder="a worker", now=NOW)
    assert lease is not None
    summary = FinishedSummary(
        summary="Tea.",
        summary_tokens=9,
        tokens_after=9,
        entry_text="",
        first_message_id=asked.pk,
        last_message_id=answered.pk,
        calls=(),
        repeated_entries=[str(second.pk)],
    )
    check_order(
        lambda: complete_compaction(lease=lease, result=summary, now=NOW),
        MemoryEntry.objects.filter(pk=first.pk),
        MemoryEntry.objects.filter(pk=second.pk),
    )


@pytest.mark.parametrize("version", ["present", "earlier"])
def test_forgetting_waits_for_other_sources_of_a_profile_line_without_the_index_lock(
    told: tuple[MemoryEntry, Conversation], version: str
) -> None:
    """The line's other entry is consolidated again; an edit of that entry may hold it and wait for the index."""
    entry, _ = told
    other = MemoryEntry.objects.create(
        user=entry.user, day=NOW.date(), text="Alice drives.", created_at=NOW, consolidated_at=NOW
    )
    line = {"text": "- Alice drives to the depot.", "sources": [[str(entry.pk), str(other.pk)]]}
    present = line if version == "present" else {**line, "sources": [[str(entry.pk)]]}
    profile = Profile.objects.create(user=entry.user, version=2, **present)
    for number, written in enumerate((line, present), start=1):
        profile.versions.create(number=number, author="consolidation", created_at=NOW, **written)
    check_order(
        lambda: forget_entry(entry.user, entry.pk, now=NOW),
        MemoryEntry.objects.filter(pk=other.pk),
        SearchOwner.objects.all(),
    )
    other.refresh_from_db()
    assert other.consolidated_at is None


def test_the_clean_up_waits_for_an_entry_without_the_index_lock(
    told: tuple[MemoryEntry, Conversation],
) -> None:
    entry, _ = told
    assert entry.conversation is not None
    say(entry.conversation, SAID)
    index_conversation(entry.conversation.pk)
    check_order(
        lambda: take_if_idle(entry.conversation.pk, idle_since=NOW + timedelta(days=900), days=0, now=NOW),
        MemoryEntry.objects.filter(pk=entry.pk),
        SearchOwner.objects.all(),
    )
    entry.refresh_from_db()
    assert entry.conversation_id is None


@pytest.fixture
def earlier_of_a_later_time(alice: User) -> tuple[MemoryEntry, MemoryEntry]:
    """Return two entries in the order of creation. The second has the earlier time."""
    first, second = (
        MemoryEntry.objects.create(
            user=alice, day=NOW.date(), text=text, created_at=NOW - timedelta(hours=back)
        )
        for back, text in enumerate(("Tea.", "Coffee."))
    )
    return first, second


def test_a_consolidation_that_waits_for_an_entry_holds_no_later_entry(
    alice: User, earlier_of_a_later_time: tuple[MemoryEntry, MemoryEntry]
) -> None:
    first, second = earlier_of_a_later_time
    row = Consolidation.objects.create(user=alice, status="pending", created_at=NOW)
    lease = claim_consolidation(consolidation_id=row.pk, now=NOW)
    assert lease is not None
    read = NewProfile("- Drinks.", 0, {second.pk: 1, first.pk: 1})
    check_order(
        lambda: complete_consolidation(lease=lease, new=read, now=NOW),
        MemoryEntry.objects.filter(pk=first.pk),
        MemoryEntry.objects.filter(pk=second.pk),
    )
    assert not MemoryEntry.objects.filter(consolidated_at=None).exists()


def test_rewriting_a_day_locks_its_entries_in_the_order_of_their_creation(
    alice: User, earlier_of_a_later_time: tuple[MemoryEntry, MemoryEntry]
) -> None:
    first, second = earlier_of_a_later_time
    sections = [DaySection(str(row.pk), f"{row.text} No sugar.") for row in (second, first)]
    check_order(
        lambda: rewrite_day(user=alice, day=NOW.date(), sections=sections, version=None, now=NOW),
        MemoryEntry.objects.filter(pk=first.pk),
        MemoryEntry.objects.filter(pk=second.pk),
    )


@pytest.mark.mechanism("forgetting.locks")
def test_sources_added_while_a_forgetting_waits_for_its_locks_are_forgotten_too(alice: User) -> None:
    home, again = new_conversation(alice), new_conversation(alice)
    first, last = say(home, SAID, "Noted.")
    entry = MemoryEntry.objects.create(
        user=alice,
        conversation=home,
        text=SAID,
        day=NOW.date(),
        created_at=NOW,
        first_message_id=first.pk,
        last_message_id=last.pk,
    )
    said, answer = say(again, f"As I told you: {SAID}", "Yes.")

    def summarise() -> None:
        with transaction.atomic():
            finished_compaction(again, summary=SAID)
            note_sources(
                entry_ids=[str(entry.pk)],
                conversation=again,
                first_message_id=said.pk,
                last_message_id=answer.pk,
                at=NOW,
            )
        connection.close()

    forgetting = threading.Thread(target=lambda: (forget_entry(alice, entry.pk, now=NOW), connection.close()))
    with transaction.atomic():
        lock_at_once(Conversation.objects.filter(pk=home.pk))
        forgetting.start()
        while forgetting.is_alive() and not somebody_waits():
            forgetting.join(0.02)
        summary = threading.Thread(target=summarise)
        summary.start()
        summary.join()
    forgetting.join()
    assert tables_with("heliotrope") == []


SENTENCES = [f"{drink} is served at noon." for drink in ("Tea", "Coffee", "Water", "Milk", "Juice")]


@pytest.fixture
def barred(alice: User) -> tuple[Tombstone, Tombstone]:
    """Return the first and the last tombstone in lock order. They are stored in reverse order."""
    before = NOW - timedelta(minutes=1)
    rows = sorted(make_tombstones(alice.pk, SENTENCES, before), key=lambda row: row.whole, reverse=True)
    Tombstone.objects.bulk_create(rows)
    return rows[-1], rows[0]


@pytest.mark.parametrize("way", ["barred again", "lifted", "lifted with their receipt"])
def test_tombstones_are_locked_in_one_order(
    alice: User, barred: tuple[Tombstone, Tombstone], way: str
) -> None:
    """Two conversations with the same sentences may be deleted while the user asks to remember them."""
    first, last = barred
    receipt = ForgetReceipt.objects.create(user=alice, what="chosen", at=NOW)
    Tombstone.objects.update(receipt=receipt)
    asking = say(new_conversation(alice), *(f"Please remember: {said}" for said in SENTENCES), role="user")
    Message.objects.update(kind=Message.Kind.INJECTED)  # as if sent, not imported
    again = sorted(make_tombstones(alice.pk, SENTENCES, NOW), key=lambda row: row.whole, reverse=True)
    ways: dict[str, Callable[[], object]] = {
        "barred again": lambda: store_tombstones(again, receipt=receipt),
        "lifted": lambda: lift_requested(alice.pk, [row.pk for row in asking]),
        "lifted with their receipt": lambda: lift_tombstones(receipt=receipt),
    }
    check_order(
        transaction.atomic(ways[way]),
        Tombstone.objects.filter(whole=first.whole),
        Tombstone.objects.filter(whole=last.whole),
    )


def test_deleting_documents_locks_the_index_of_a_user_before_that_of_a_scope(
    told: tuple[MemoryEntry, Conversation], bob: User
) -> None:
    """The worker removes forgotten sources from all indexes. Writing an entry locks the indexes in this order."""
    entry = MemoryEntry.objects.get(user=bob)
    documents = documents_made_of([entry.pk])
    assert documents.count() == 2
    check_order(
        lambda: delete_documents(documents, PIECE),
        SearchOwner.objects.filter(user=bob),
        SearchOwner.objects.filter(scope__isnull=False),
    )
    assert not documents.exists()


@pytest.fixture
def answering(alice: User) -> tuple[Run, Run]:
    """Return two running answers of alice in the order of their keys. They are stored in reverse order."""
    keys = sorted(new_id() for _ in range(2))
    for key in reversed(keys):
        chat = new_conversation(alice)
        question, answer = say(chat, "And now?", "")
        Run.objects.create(
            pk=key,
            conversation=chat,
            user=alice,
            question=question,
            answer=answer,
            status="running",
            fence=1,
            created_at=NOW,
        )
    return Run.objects.get(pk=keys[0]), Run.objects.get(pk=keys[1])


@pytest.mark.parametrize("way", ["a forgetting", "a heartbeat", "a deleted account"])
def test_running_answers_are_locked_in_one_order(alice: User, answering: tuple[Run, Run], way: str) -> None:
    """A process renews the leases of all its answers while a forgetting stops those that may have read the text."""
    first, second = answering
    entry = MemoryEntry.objects.create(user=alice, day=NOW.date(), text=SAID, created_at=NOW)
    leases = [Lease(run.pk, run.answer_id, run.fence) for run in (second, first)]
    ways: dict[str, Callable[[], object]] = {
        "a forgetting": lambda: forget_entry(alice, entry.pk, now=NOW),
        "a heartbeat": lambda: renew_leases(leases=leases, now=NOW),
        "a deleted account": lambda: delete_user(user=alice),
    }
    check_order(ways[way], Run.objects.filter(pk=first.pk), Run.objects.filter(pk=second.pk))


def test_deleting_an_account_waits_for_a_conversation_without_locking_its_runs(
    alice: User, answering: tuple[Run, Run]
) -> None:
    """The writer of an answer locks the conversation first, then the run."""
    check_order(
        lambda: delete_user(user=alice),
        Conversation.objects.filter(pk=answering[0].conversation_id),
        Run.objects.filter(pk=answering[0].pk),
    )


def test_deleting_a_file_locks_the_conversation_before_the_message_and_the_file(alice: User) -> None:
    """Forgetting a message locks its conversation, then deletes its file and blanks it."""
    chat = new_conversation(alice)
    file = create_attachment(
        user=alice, name="a.txt", sha256="0" * 64, mime_type="text/plain", width=0, height=0, size_bytes=1
    )
    shown = {
        "type": "file",
        "file_id": str(file.pk),
        "mime_type": "text/plain",
        "name": "a.txt",
        "size_bytes": 1,
    }
    [said] = say(chat, "See this.")
    Message.objects.filter(pk=said.pk).update(parts=[shown, *said.parts])
    said.attachments.add(file)
    check_order(
        lambda: delete_file(alice, str(file.pk), now=NOW),
        Conversation.objects.filter(pk=chat.pk),
        Message.objects.filter(pk=said.pk),
        Attachment.objects.filter(pk=file.pk),
    )
    said.refresh_from_db()
    assert [part["type"] for part in said.parts] == ["text"]


@pytest.mark.parametrize("what", ["folder", "agent", "model"])
def test_deleting_a_folder_agent_or_model_locks_its_conversations_in_order(alice: User, what: str) -> None:
    """Django clears all foreign keys in one statement, which locks the rows in arbitrary order."""
    named: dict[str, Any] = {
        "folder": Folder.objects.create(user=alice, name="Work", created_at=NOW),
        "agent": Agent.objects.create(name="Porter"),
        "model": ModelConfig.objects.create(name="Large", model_id="large"),
    }
    keys = sorted(new_id() for _ in range(2))
    for key in reversed(keys):
        Conversation.objects.create(pk=key, user=alice, last_activity_at=NOW, **{what: named[what]})
    check_order(
        named[what].delete, Conversation.objects.filter(pk=keys[0]), Conversation.objects.filter(pk=keys[1])
    )
    assert not Conversation.objects.exclude(**{what: None}).exists()


def test_deleting_an_index_locks_its_conversations_in_order(alice: User) -> None:
    keys = sorted(new_id() for _ in range(2))
    for key in reversed(keys):
        Conversation.objects.create(pk=key, user=alice, last_activity_at=NOW, indexed_below=1)
    check_order(
        lambda: delete_index(alice.pk),
        Conversation.objects.filter(pk=keys[0]),
        Conversation.objects.filter(pk=keys[1]),
    )


@pytest.fixture
def scopes() -> list[Agent]:
    """Return two agents with shared memory in the order of their keys. Their indexes are stored in reverse order."""
    made = [Agent.objects.create(name=name, shares_memory=True) for name in "AB"]
    for agent in reversed(made):
        SearchOwner.objects.create(scope=agent)
    return made


def test_deleting_the_indexes_of_scopes_locks_them_in_order(scopes: list[Agent]) -> None:
    first, last = (SearchOwner.objects.filter(scope=agent) for agent in scopes)
    check_order(delete_shared_indexes, first, last)


def test_forgetting_lines_and_entries_locks_the_indexes_of_scopes_in_order(
    alice: User, scopes: list[Agent]
) -> None:
    """Deleted entries leave their index before changed ones are indexed again, so both are locked first."""
    first, last = (
        MemoryEntry.objects.create(
            user=alice,
            day=NOW.date(),
            text=f"{SAID}\nIt rains.",
            created_at=NOW,
            scope=scope,
            shared_in=scope.pk,
        )
        for scope in scopes
    )
    for entry in (first, last):
        index_entry(entry)
    check_order(
        lambda: forget_chosen(
            alice, [], [first.pk, last.pk], what="chosen", now=NOW, lines={first.pk: [SAID]}
        ),
        SearchOwner.objects.filter(scope=scopes[0]),
        SearchOwner.objects.filter(scope=scopes[1]),
    )


def test_restoring_a_conversation_locks_forgetting_counts_in_order(alice: User) -> None:
    """Another user of both shared memories may forget at the same time."""
    scopes = sorted(
        (Agent.objects.create(name=name, shares_memory=True) for name in "AB"), key=lambda one: one.pk
    )
    for scope in scopes:
        MemoryEntry.objects.create(
            user=alice, day=NOW.date(), text=SAID, created_at=NOW, scope=scope, shared_in=scope.pk
        )
    chat = new_conversation(alice)
    say(chat, SAID)
    Conversation.objects.filter(pk=chat.pk).update(scope=scopes[1], shared_in=scopes[1].pk)
    move_to_trash(alice, str(chat.pk), days=30, now=NOW)
    store_tombstones(make_tombstones(alice.pk, [SAID], NOW + timedelta(minutes=1)))
    counts = ForgettingCount.objects.bulk_create(ForgettingCount(pk=one.pk) for one in scopes)
    check_order(
        lambda: restore(alice, str(chat.pk), now=NOW),
        ForgettingCount.objects.filter(pk=counts[0].pk),
        ForgettingCount.objects.filter(pk=counts[1].pk),
    )


@pytest.mark.parametrize("moves", ["to the trash", "back"])
def test_moving_a_conversation_locks_the_index_before_its_documents(alice: User, moves: str) -> None:
    """A worker that indexes documents again changes many rows under that lock, in another order."""
    chat = new_conversation(alice)
    entry = MemoryEntry.objects.create(
        user=alice, day=NOW.date(), text=SAID, created_at=NOW, conversation=chat
    )
    index_entry(entry)
    if moves == "back":
        move_to_trash(alice, str(chat.pk), days=30, now=NOW)
    check_order(
        lambda: (
            restore(alice, str(chat.pk), now=NOW)
            if moves == "back"
            else move_to_trash(alice, str(chat.pk), days=30, now=NOW)
        ),
        SearchOwner.objects.all(),
        SearchDocument.objects.all(),
    )
    assert SearchDocument.objects.get().conversation == (chat if moves == "back" else None)
