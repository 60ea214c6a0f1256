"""What finished turns wake the index for is gathered over users, and indexed in few transactions."""

from __future__ import annotations

from collections import deque

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.recall.actions.indexing import FEW, index_some
from chatapp.recall.tasks import index_conversations
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


def test_conversations_of_several_users_are_indexed_together(alice: User, bob: User) -> None:
    conversations = [new_conversation(user) for user in (alice, bob, alice)]
    for number, conversation in enumerate(conversations):
        say(conversation, f"Note {number} is about Lisbon", "Noted.")
    waiting = deque(conversation.pk for conversation in conversations)
    while waiting:  # a slow machine takes fewer at once
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


def test_a_conversation_that_is_gone_is_passed_over(alice: User) -> None:
    conversation = new_conversation(alice)
    say(conversation, "Hello Lisbon", "Hello.")
    gone = new_conversation(alice)
    ids = [str(gone.pk), str(conversation.pk)]
    gone.delete()
    index_conversations(ids)
    assert Conversation.objects.get().indexed_below == 2
