"""Recall events replay the current text of each recalled row, and only for users who may read that row now."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import TypeAdapter

from agents import events
from agents.events import Fact
from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.compaction.models import Compaction
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.models import MemoryEntry
from chatapp.realtime import event_log
from chatapp.realtime.event_log import read_after
from tests.memory_store.rows import NOW, finished_compaction, new_conversation, say

pytestmark = pytest.mark.django_db

EVENTS: TypeAdapter[Fact] = TypeAdapter(Fact)
SAID = "The gate code of the depot is 7731-heliotrope."
SINCE = "My salary is 90000 and nobody knows of it."
SHORT_ENOUGH = 200


@pytest.fixture
def porter(db: None) -> Agent:
    return Agent.objects.create(name="Porter", shares_memory=True)


def shared_chat(user: User, agent: Agent) -> Conversation:
    conversation = new_conversation(user)
    Conversation.objects.filter(pk=conversation.pk).update(agent=agent, scope=agent, shared_in=agent.pk)
    conversation.refresh_from_db()
    return conversation


def entry_of(user: User, scope: Agent | None = None, text: str = SAID, **fields: Any) -> MemoryEntry:
    shared_in = scope.pk if scope else None
    return MemoryEntry.objects.create(
        user=user, day=NOW.date(), text=text, scope=scope, shared_in=shared_in, created_at=NOW, **fields
    )


def recall(conversation: Conversation, **source: str) -> None:
    item = events.RecalledItem(source=source, tokens=9, preview=SAID, start=0, end=SHORT_ENOUGH)
    where = {"conversation_id": str(conversation.pk), "run_id": str(conversation.pk), "at": NOW}
    event_log.append(conversation, events.Recall(**where, items=[item], total_count=1, total_tokens=9))


def recall_entry(conversation: Conversation, entry: MemoryEntry, kind: str = "shared") -> None:
    recall(conversation, kind=kind, entry_id=str(entry.pk), day=entry.day.isoformat())


def shown(conversation_id: UUID) -> str:
    """Return the preview of the only item recalled there, or an empty string if its reader may not see it any more."""
    [event] = read_after(conversation_id, 0)
    EVENTS.validate_python(event)
    if not event["items"]:
        return ""
    [item] = event["items"]
    assert {"source", "tokens", "preview"} <= set(item)
    assert not {"start", "end"} & set(item)
    return str(item["preview"]).removeprefix("memory: ")


def test_a_shared_entry_is_shown_to_other_users(alice: User, bob: User, porter: Agent) -> None:
    chat = shared_chat(bob, porter)
    recall_entry(chat, entry_of(alice, porter))
    assert shown(chat.pk) == SAID


def test_an_entry_that_is_private_again_is_shown_to_its_user_only(
    alice: User, bob: User, porter: Agent
) -> None:
    theirs, own = shared_chat(bob, porter), shared_chat(alice, porter)
    entry = entry_of(alice, porter)
    recall_entry(theirs, entry)
    recall_entry(own, entry)
    porter.delete()
    entry.refresh_from_db()
    assert entry.scope_id is None
    MemoryEntry.objects.filter(pk=entry.pk).update(text=SINCE)
    assert shown(theirs.pk) == ""
    assert shown(own.pk) == SINCE


@pytest.mark.parametrize(
    "closing", [{"shares_memory": False}, {"enabled": False}, {"uses_memory": False}], ids=str
)
def test_entries_of_a_closed_shared_memory_are_shown_to_their_user_only(
    alice: User, bob: User, porter: Agent, closing: dict[str, bool]
) -> None:
    theirs, own = shared_chat(bob, porter), shared_chat(alice, porter)
    entry = entry_of(alice, porter)
    recall_entry(theirs, entry)
    recall_entry(own, entry)
    Agent.objects.filter(pk=porter.pk).update(**closing)
    assert (shown(theirs.pk), shown(own.pk)) == ("", SAID)


def test_other_users_entries_of_another_scope_or_without_one_are_not_shown(
    alice: User, bob: User, porter: Agent
) -> None:
    other = Agent.objects.create(name="Gardener", shares_memory=True)
    for chat, entry in (
        (shared_chat(bob, porter), entry_of(alice, other)),
        (shared_chat(bob, porter), entry_of(alice)),
        (new_conversation(bob), entry_of(alice, porter)),
        (new_conversation(bob), entry_of(alice)),
    ):
        recall_entry(chat, entry)
        assert shown(chat.pk) == ""


def test_shared_entries_are_not_shown_in_a_temporary_chat(alice: User, bob: User, porter: Agent) -> None:
    chat = shared_chat(bob, porter)
    recall_entry(chat, entry_of(alice, porter))
    Conversation.objects.filter(pk=chat.pk).update(temporary=True)
    assert shown(chat.pk) == ""


def test_an_entry_that_waits_for_approval_is_not_shown_to_others(
    alice: User, bob: User, porter: Agent
) -> None:
    chat = shared_chat(bob, porter)
    recall_entry(chat, entry_of(alice, porter, state=MemoryEntry.State.PROPOSED))
    assert shown(chat.pk) == ""


def test_an_entry_whose_summary_was_undone_is_not_shown_to_others(
    alice: User, bob: User, porter: Agent
) -> None:
    said_in = shared_chat(alice, porter)
    say(said_in, SAID)
    summary = finished_compaction(said_in)
    chat = shared_chat(bob, porter)
    entry = entry_of(alice, porter, compaction=summary)
    recall_entry(chat, entry)
    assert shown(chat.pk) == SAID
    Compaction.objects.filter(pk=summary.pk).update(status=Compaction.Status.UNDONE)
    assert shown(chat.pk) == ""
    MemoryEntry.objects.filter(pk=entry.pk).update(author=MemoryEntry.Author.USER)
    assert shown(chat.pk) == SAID, "its user wrote in it: it stands without the summary"


def test_the_message_of_another_user_is_not_shown(alice: User, bob: User) -> None:
    [message] = say(new_conversation(alice), SAID)
    theirs, own = new_conversation(bob), new_conversation(alice)
    for chat in (theirs, own):
        recall(chat, kind="message", message_id=str(message.pk))
    assert (shown(theirs.pk), shown(own.pk)) == ("", f"user: {SAID}")


def test_a_message_of_a_conversation_that_is_being_deleted_is_not_shown(alice: User) -> None:
    said_in, chat = new_conversation(alice), new_conversation(alice)
    [message] = say(said_in, SAID)
    recall(chat, kind="message", message_id=str(message.pk))
    Conversation.objects.filter(pk=said_in.pk).update(user=None)
    assert Message.objects.filter(pk=message.pk).exists()
    assert shown(chat.pk) == ""


def test_the_number_of_queries_does_not_grow_with_the_recalled_entries(
    alice: User, bob: User, porter: Agent
) -> None:
    counts = []
    for count in (1, 20):
        chat = shared_chat(bob, porter)
        for _ in range(count):
            recall_entry(chat, entry_of(alice, porter))
        with CaptureQueriesContext(connection) as queries:
            assert len(read_after(chat.pk, 0)) == count
        counts.append(len(queries))
    # The first read also loads the users' group rights, which are cached.
    assert counts[1] <= counts[0]
