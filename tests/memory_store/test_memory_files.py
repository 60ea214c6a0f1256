import threading
from datetime import date, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.long_term import files as memory_files
from chatapp.long_term.actions.entries import record_entry
from chatapp.long_term.actions.stale_days import mark_days_stale
from chatapp.long_term.models import MemoryEntry, StaleDay
from chatapp.realtime.models import Event
from memory.long_term.daily import parse_day
from tests.memory_store.rows import NOW, finished_compaction, new_conversation

DAY = NOW.date()


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return new_conversation(alice, "Garden")


def remember(conversation: Conversation, text: str, number: int = 0, at: datetime = NOW) -> MemoryEntry:
    recorded = record_entry(
        compaction=finished_compaction(conversation, number),
        text=text,
        first_message_id=uuid4(),
        last_message_id=uuid4(),
        at=at,
    )
    assert recorded is not None
    return recorded


def told(conversation: Conversation) -> list[str]:
    events = Event.objects.filter(conversation=conversation, type="memory.written").order_by("seq")
    return [event.payload["entry_id"] for event in events]


@pytest.mark.mechanism("cowagent.daily-file")
def test_an_entry_is_written_to_its_file_and_announced_once(conversation: Conversation):
    entry = remember(conversation, "The plum tree blooms in March.")
    for _ in range(3):
        memory_files.write_day(conversation.user_id, DAY)
    text = memory_files.day_path(conversation.user_id, DAY).read_text()
    assert [section.text for section in parse_day(text)] == ["The plum tree blooms in March."]
    assert told(conversation) == [str(entry.pk)]


def test_recording_the_same_compaction_again_returns_the_same_entry(conversation: Conversation):
    row = finished_compaction(conversation)
    ids = {"first_message_id": uuid4(), "last_message_id": uuid4()}
    first = record_entry(compaction=row, text="One.", at=NOW, **ids)
    again = record_entry(compaction=row, text="Other words.", at=NOW, **ids)
    assert first == again
    assert MemoryEntry.objects.get().text == "One."


def test_the_day_of_an_entry_is_in_the_users_time_zone(conversation: Conversation):
    User.objects.filter(pk=conversation.user_id).update(time_zone="Asia/Tokyo")
    fresh = Conversation.objects.get(pk=conversation.pk)
    assert remember(fresh, "Late.").day == date(2026, 11, 22)


def test_an_unknown_time_zone_falls_back_to_utc(conversation: Conversation):
    User.objects.filter(pk=conversation.user_id).update(time_zone="Mars/Olympus")
    fresh = Conversation.objects.get(pk=conversation.pk)
    assert remember(fresh, "Late.").day == DAY


def test_a_temporary_conversation_leaves_no_entry(alice: User):
    secret = new_conversation(alice, temporary=True)
    span = {"first_message_id": uuid4(), "last_message_id": uuid4()}
    assert record_entry(compaction=finished_compaction(secret), text="Hush.", at=NOW, **span) is None
    assert not MemoryEntry.objects.exists()


def test_the_sweep_writes_a_file_that_is_missing_after_a_crash(conversation: Conversation):
    entry = remember(conversation, "Committed, then the power went.")
    assert not memory_files.day_path(conversation.user_id, DAY).exists()
    assert memory_files.sweep_unwritten() == 1
    assert "the power went" in memory_files.day_path(conversation.user_id, DAY).read_text()
    assert told(conversation) == [str(entry.pk)]
    assert memory_files.sweep_unwritten() == 0


def test_the_sweep_announces_an_entry_after_a_crash_between_file_and_mark(conversation: Conversation):
    entry = remember(conversation, "In the file already.")
    memory_files.write_day(conversation.user_id, DAY)
    MemoryEntry.objects.update(written_at=None)
    Event.objects.all().delete()
    memory_files.sweep_unwritten()
    assert memory_files.day_path(conversation.user_id, DAY).read_text().count("In the file already.") == 1
    assert told(conversation) == [str(entry.pk)]


def test_a_day_whose_last_entry_is_gone_has_no_file(conversation: Conversation):
    entry = remember(conversation, "Soon gone.")
    memory_files.write_day(conversation.user_id, DAY)
    entry.delete()
    mark_days_stale(conversation.user_id, [DAY])
    assert memory_files.sweep_unwritten() == 1
    assert not memory_files.day_path(conversation.user_id, DAY).exists()
    assert not StaleDay.objects.exists()


def test_no_temporary_file_is_left_beside_the_file(conversation: Conversation):
    remember(conversation, "Tidy.")
    memory_files.write_day(conversation.user_id, DAY)
    names = {path.name for path in memory_files.user_folder(conversation.user_id).iterdir()}
    assert names == {"2026-11-21.md", ".lock"}


def test_rebuilding_restores_lost_files_and_removes_those_without_entries(conversation: Conversation):
    remember(conversation, "Kept.")
    memory_files.write_day(conversation.user_id, DAY)
    memory_files.day_path(conversation.user_id, DAY).unlink()
    stray = memory_files.day_path(conversation.user_id, DAY - timedelta(days=3))
    stray.write_text("# nobody remembers this\n")
    memory_files.rebuild_files(conversation.user_id)
    assert "Kept." in memory_files.day_path(conversation.user_id, DAY).read_text()
    assert not stray.exists()


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_of_a_day_keep_every_entry_and_announce_each_once(conversation: Conversation):
    entries = [remember(conversation, f"Fact {number}.", number) for number in range(6)]

    def write_after_recording() -> None:
        try:
            memory_files.write_day(conversation.user_id, DAY)
        finally:
            connection.close()

    writers = [threading.Thread(target=write_after_recording) for _ in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    text = memory_files.day_path(conversation.user_id, DAY).read_text()
    assert [section.text for section in parse_day(text)] == [f"Fact {number}." for number in range(6)]
    assert sorted(told(conversation)) == sorted(str(entry.pk) for entry in entries)
