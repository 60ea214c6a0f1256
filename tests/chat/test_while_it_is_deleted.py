"""A conversation without a user is being deleted, and code that still works on it finds it gone."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from chatapp.accounts.models import User
from chatapp.compaction.actions.compactions import complete_compaction, fail_compaction
from chatapp.compaction.models import Compaction
from chatapp.compaction.values import CompactionLease, FinishedSummary
from chatapp.conversations.actions.conversations import updated_event
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.operations.errors import LeaseLost
from chatapp.realtime import event_log
from chatapp.realtime.event_log import read_after
from chatapp.realtime.models import Event
from chatapp.realtime.replay import full_events
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run
from chatapp.runs.run_context import describe_run, load_turn_end
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db


def take_user_from(conversation: Conversation) -> None:
    """Remove the user as a deletion does first, in one transaction. It deletes the rows later."""
    Conversation.objects.filter(pk=conversation.pk).update(user=None)


def ask(user: User) -> tuple[Conversation, UUID]:
    conversation = new_conversation(user, at=NOW + timedelta(days=1))
    receipt = send_message(
        user=user,
        conversation_id=str(conversation.pk),
        new=NewMessage("What do I like?"),
        model=None,
        now=clock.now(),
    )
    return conversation, UUID(receipt.run_id)


def test_events_of_a_conversation_being_deleted_are_not_read(alice: User) -> None:
    conversation = new_conversation(alice, "Lanterns")
    event_log.append(conversation, updated_event(conversation, NOW))
    assert len(read_after(conversation.pk, 0)) == 1
    take_user_from(conversation)
    assert Event.objects.filter(conversation=conversation).exists()
    assert read_after(conversation.pk, 0) == []


def test_events_read_just_before_a_deletion_contain_no_text(alice: User) -> None:
    conversation = new_conversation(alice, "Lanterns")
    event_log.append(conversation, updated_event(conversation, NOW))
    rows = list(Event.objects.filter(conversation=conversation))
    take_user_from(conversation)
    [event] = full_events(rows)
    assert event["conversation"]["title"] == ""


def test_a_run_of_a_conversation_being_deleted_does_not_begin_and_has_no_turn_end(alice: User) -> None:
    conversation, run_id = ask(alice)
    take_user_from(conversation)
    assert Run.objects.filter(pk=run_id).exists()
    with pytest.raises(Run.DoesNotExist):
        describe_run(run_id)
    assert load_turn_end(run_id) is None


def test_a_summary_of_a_conversation_being_deleted_is_not_stored(alice: User) -> None:
    conversation = new_conversation(alice)
    rows = say(conversation, "I like tea.", "Noted.")
    row = finished_compaction(conversation)
    Compaction.objects.filter(pk=row.pk).update(status=Compaction.Status.RUNNING, fence=1, summary="")
    take_user_from(conversation)
    lease = CompactionLease(row.pk, 1)
    with pytest.raises(LeaseLost):
        fail_compaction(lease=lease, error="It broke.", calls=(), now=NOW)
    result = FinishedSummary(
        summary="Tea is liked.",
        summary_tokens=4,
        tokens_after=4,
        entry_text="Tea is liked.",
        first_message_id=rows[0].pk,
        last_message_id=rows[1].pk,
        calls=(),
    )
    with pytest.raises(LeaseLost):
        complete_compaction(lease=lease, result=result, now=NOW)
    row.refresh_from_db()
    assert (row.summary, row.status) == ("", Compaction.Status.RUNNING)
