"""Finished turns of several users are indexed together, in few transactions."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from celery.signals import before_task_publish
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.operations.database.work_budget import PIECE, Pace
from chatapp.recall.actions.indexing import FEW, index_some
from chatapp.recall.selectors.unindexed import has_more_to_index
from chatapp.recall.tasks import index_conversations, index_together
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


def test_conversations_of_several_users_are_indexed_together(alice: User, bob: User) -> None:
    conversations = [new_conversation(user) for user in (alice, bob, alice)]
    for number, conversation in enumerate(conversations):
        say(conversation, f"Note {number} is about Lisbon", "Noted.")
    waiting = deque(conversation.pk for conversation in conversations)
    while waiting:  # a slow machine indexes fewer at once
        assert index_some(waiting) == []
    assert set(Conversation.objects.values_list("indexed_below", flat=True)) == {2}


def test_a_long_conversation_is_left_to_a_task_of_its_own(alice: User, bob: User) -> None:
    long, short = new_conversation(alice), new_conversation(bob)
    for number in range(FEW):
        say(long, f"Note {number}", "Noted.")
    say(short, "Hello Lisbon", "Hello.")
    waiting = deque([long.pk, short.pk])
    longer = []
    while waiting:
        longer += index_some(waiting)
    assert longer == [long.pk]
    assert Conversation.objects.get(pk=long.pk).indexed_below == FEW
    assert Conversation.objects.get(pk=short.pk).indexed_below == 2


def test_few_long_messages_are_left_to_a_task_of_their_own_too(alice: User) -> None:
    conversation = new_conversation(alice)
    for number in range(2):
        say(conversation, f"Note {number} about Lisbon. " * 2_000, "Noted.")
    assert index_some(deque([conversation.pk])) == [conversation.pk]
    assert has_more_to_index(conversation.pk)


def test_a_turn_is_indexed_in_few_statements(
    alice: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    conversation = new_conversation(alice)
    say(conversation, "Hello Lisbon", "Hello.")
    index_some(deque([conversation.pk]))  # the first turn creates the user's index
    say(conversation, "Is Porto near?", "By train it is.")
    with django_assert_max_num_queries(13):
        index_some(deque([conversation.pk]))
    assert Conversation.objects.get().indexed_below == 4


def test_temporary_conversations_are_not_indexed(alice: User) -> None:
    temporary = new_conversation(alice)
    say(temporary, "Hello Lisbon", "Hello.")
    Conversation.objects.update(temporary=True)
    assert index_some(deque([temporary.pk])) == []
    assert Conversation.objects.get().indexed_below == 0
    assert not has_more_to_index(temporary.pk)


def test_a_deleted_conversation_is_skipped(alice: User) -> None:
    conversation = new_conversation(alice)
    say(conversation, "Hello Lisbon", "Hello.")
    gone = new_conversation(alice)
    ids = [str(gone.pk), str(conversation.pk)]
    gone.delete()
    index_conversations(ids)
    assert Conversation.objects.get().indexed_below == 2


def test_indexed_conversations_are_embedded_even_if_their_batch_ran_out_of_time(
    alice: User, bob: User, settings: Settings
) -> None:
    settings.EMBEDDINGS_MODEL, settings.EMBEDDED = "embeddings", True
    many = [new_conversation(alice) for _ in range(PIECE.rows // FEW)]
    for conversation in many:
        for number in range(FEW // 2):
            say(conversation, f"Note {number}", "Noted.")
    last = new_conversation(bob)
    say(last, "Hello Lisbon", "Hello.")
    sent: list[tuple[str, Any]] = []

    def note(sender: str, body: Any, **_: Any) -> None:
        sent.append((sender, body[0][0]))

    before_task_publish.connect(note)
    try:
        # However little time there is, the one piece includes the first conversation, and never the last.
        moments = iter(range(100))
        pace = Pace(0.0, clock=lambda: float(next(moments)), sleep=lambda _: None)
        index_together([str(one.pk) for one in (*many, last)], pace)
    finally:
        before_task_publish.disconnect(note)
    assert Conversation.objects.get(pk=last.pk).indexed_below == 0
    assert Conversation.objects.get(pk=many[0].pk).indexed_below == FEW
    embedded = {user_id for name, user_id in sent if name == "chatapp.recall.tasks.embed_index"}
    assert embedded == {str(alice.pk)}
