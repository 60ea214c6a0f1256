import io
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import DataError, IntegrityError, connection, transaction
from PIL import Image

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, GroupRetention, Message
from chatapp.conversations.schemas.conversations import expires_at
from chatapp.conversations.selectors.conversations import full_conversation
from chatapp.files import attachments
from chatapp.forgetting.services import forget_whole_conversation
from chatapp.forgetting.trash.services import clean_up_idle
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions.indexing import index_conversation
from chatapp.recall.analysis import analyzer, hash_term
from chatapp.recall.models import SearchDocument, SearchPosting
from chatapp.recall.user_search import search_memory
from chatapp.runs.models import Run
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

SECRET = "heliotrope"


def picture(shade: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (4, 4), shade).save(buffer, "PNG")
    return buffer.getvalue()


def long_conversation(user: User, shade: int = 1) -> Conversation:
    """Return an indexed conversation with messages, an image, a checkpoint, and an entry in its daily file."""
    conversation = new_conversation(user, f"About {SECRET}", at=NOW - timedelta(days=40))
    [message, _] = say(conversation, f"My favourite colour is {SECRET}.", "Noted.")
    row = attachments.store_image(user=user, name="a.png", content=picture(shade))
    row.messages.add(message)
    record_entry(
        compaction=finished_compaction(conversation, summary=SECRET),
        text=f"Likes {SECRET}.",
        first_message_id=message.pk,
        last_message_id=message.pk,
        at=NOW,
    )
    memory_files.write_day(user.pk, NOW.date())
    index_conversation(conversation.pk)
    assert found(user)
    return conversation


def found(user: User) -> list[str]:
    return [item.text for item in search_memory(user_id=user.pk, query=SECRET, limit=10, now=NOW, zone=UTC)]


def files_that_mention(word: str) -> list[Path]:
    folders = [Path(settings.DATA_DIR) / "memory", Path(settings.DATA_DIR) / "files"]
    paths = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in paths if word.encode() in path.read_bytes()]


def rows_that_mention(word: str) -> list[str]:
    with connection.cursor() as cursor:
        names = [name for name in connection.introspection.table_names(cursor) if name.startswith("chatapp_")]
        said = []
        for name in names:
            cursor.execute(f'SELECT * FROM "{name}"')
            said += [name for row in cursor.fetchall() if word in str(row)]
    return said


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_files")
def test_a_forgotten_conversation_leaves_no_rows_files_or_index(alice: User):
    conversation = long_conversation(alice)
    [image] = conversation.messages.get(position=0).attachments.all()
    forget_whole_conversation(alice, conversation.pk, now=NOW)
    assert rows_that_mention(SECRET) == []
    assert files_that_mention(SECRET) == []
    assert not memory_files.day_path(alice.pk, NOW.date()).exists()
    assert not attachments.content_path(image.sha256).exists()
    assert found(alice) == []
    assert not SearchDocument.objects.exists()


def test_an_image_that_another_conversation_shows_stays(alice: User):
    kept, gone = long_conversation(alice), long_conversation(alice)
    shared = kept.messages.get(position=0).attachments.get()
    shared.messages.add(gone.messages.get(position=0))
    forget_whole_conversation(alice, gone.pk, now=NOW)
    assert attachments.content_path(shared.sha256).exists()
    assert f"My favourite colour is {SECRET}." in found(alice)
    assert MemoryEntry.objects.get().conversation == kept


@pytest.mark.mechanism("cowagent.retention")
def test_the_clean_up_deletes_idle_conversations_but_keeps_their_memory(alice: User):
    conversation = long_conversation(alice)
    assert clean_up_idle(now=NOW, days=30, trash_days=0) == 1
    assert not Conversation.objects.filter(pk=conversation.pk).exists()
    assert not Message.objects.exists()
    assert MemoryEntry.objects.get().conversation is None
    text = memory_files.day_path(alice.pk, NOW.date()).read_text()
    assert f"Likes {SECRET}." in text
    assert str(conversation.pk) not in text
    assert found(alice) == [f"Likes {SECRET}."]


@pytest.mark.parametrize("why", ["pinned", "recent", "running", "never"])
def test_the_clean_up_keeps_pinned_recent_and_running_conversations(alice: User, why: str):
    conversation = new_conversation(alice, at=NOW - timedelta(days=40), pinned=why == "pinned")
    if why == "recent":
        Conversation.objects.update(last_activity_at=NOW - timedelta(days=29))
    if why == "running":
        [question, answer] = say(conversation, "Go on", "…")
        Run.objects.create(
            conversation=conversation,
            user=alice,
            question=question,
            answer=answer,
            status="running",
            created_at=NOW,
        )
    assert clean_up_idle(now=NOW, days=0 if why == "never" else 30, trash_days=0) == 0
    assert Conversation.objects.filter(pk=conversation.pk).exists()


@pytest.mark.mechanism("cowagent.retention")
@pytest.mark.parametrize(
    ("periods", "is_kept"), [((60,), True), ((10, 60), True), ((10,), False), ((0, 10), True)]
)
def test_the_longest_retention_period_of_a_users_groups_applies(
    alice: User, periods: tuple[int, ...], is_kept: bool
):
    for number, days in enumerate(periods):
        group = Group.objects.create(name=f"group {number}")
        GroupRetention.objects.create(group=group, days=days)
        alice.groups.add(group)
    conversation = new_conversation(alice, at=NOW - timedelta(days=20))
    told = full_conversation(conversation)["expires_at"]
    expected = None if 0 in periods else conversation.last_activity_at + timedelta(days=max(periods))
    assert (told and datetime.fromisoformat(told)) == expected
    clean_up_idle(now=NOW, days=15, trash_days=0)
    assert Conversation.objects.filter(pk=conversation.pk).exists() is is_kept


def test_a_groups_retention_period_does_not_apply_to_other_users(alice: User, bob: User):
    group = Group.objects.create(name="Researchers")
    GroupRetention.objects.create(group=group, days=365)
    bob.groups.add(group)
    for user in (alice, bob):
        new_conversation(user, at=NOW - timedelta(days=40))
    assert clean_up_idle(now=NOW, days=30, trash_days=0) == 1
    assert Conversation.objects.get().user == bob


@pytest.mark.mechanism("cowagent.retention")
def test_expires_at_is_the_date_of_the_clean_up(alice: User):
    conversation = new_conversation(alice, at=NOW)
    assert expires_at(conversation, 30) == NOW + timedelta(days=30)
    assert expires_at(conversation, 0) is None
    conversation.pinned = True
    assert expires_at(conversation, 30) is None


@pytest.mark.django_db(transaction=True)
def test_a_message_that_arrives_during_the_clean_up_saves_its_conversation(alice: User):
    conversation = new_conversation(alice, at=NOW - timedelta(days=40))
    is_locked, may_go_on = threading.Event(), threading.Event()

    def send() -> None:
        try:
            with transaction.atomic():
                Conversation.objects.select_for_update().get(pk=conversation.pk)
                Conversation.objects.filter(pk=conversation.pk).update(last_activity_at=NOW)
                is_locked.set()
                may_go_on.wait(120)
        finally:
            connection.close()

    deleted: list[int] = []

    def clean_up() -> None:
        try:
            deleted.append(clean_up_idle(now=NOW, days=30, trash_days=0))
        finally:
            connection.close()

    sender, cleaner = threading.Thread(target=send), threading.Thread(target=clean_up)
    sender.start()
    assert is_locked.wait(120)
    cleaner.start()
    may_go_on.set()
    sender.join()
    cleaner.join()
    assert deleted == [0]
    assert Conversation.objects.filter(pk=conversation.pk).exists()


def test_no_posting_names_a_deleted_document(alice: User):
    conversation = new_conversation(alice)
    say(conversation, *(f"{SECRET} number {number}" for number in range(300)))
    other = new_conversation(alice)
    say(other, "the garden has a plum tree")
    for row in (other, conversation):
        index_conversation(row.pk)
    assert len(found(alice)) == 10
    forget_whole_conversation(alice, conversation.pk, now=NOW)
    assert found(alice) == []
    left_terms = {hash_term(term) for term in analyzer.document_terms("the garden has a plum tree")}
    assert set(SearchPosting.objects.values_list("term", flat=True)) == left_terms
    [left] = search_memory(user_id=alice.pk, query="plum", limit=5, now=NOW, zone=UTC)
    assert left.text == "the garden has a plum tree"


def test_invalid_retention_periods_delete_nothing(alice: User) -> None:
    conversation = new_conversation(alice, at=NOW - timedelta(days=4_000))
    for days in (-1, -(10**9), 10**9):
        assert clean_up_idle(now=NOW, days=days, trash_days=0) == 0
    assert Conversation.objects.filter(pk=conversation.pk).exists()
    assert expires_at(conversation, -1) is None


@pytest.mark.parametrize("days", [-1, 36_501, 2**31 - 1])
def test_the_database_refuses_invalid_retention_periods(db: None, days: int) -> None:
    with pytest.raises((IntegrityError, DataError)):
        GroupRetention.objects.create(group=Group.objects.create(name="g"), days=days)
