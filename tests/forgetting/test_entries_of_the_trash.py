"""Entries that are forgotten while their conversation is in the trash (chatapp/forgetting/trash)."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.models import Message
from chatapp.forgetting.services import forget_entry
from chatapp.forgetting.trash.services import move_to_trash, restore
from chatapp.long_term.models import MemoryEntry
from chatapp.recall.actions.indexing import index_conversation
from tests.forgetting.everywhere import tables_with
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)
CODE = "K4711ZQ"


@pytest.mark.parametrize("is_in_trash", [False, True])
def test_forgetting_an_entry_removes_its_source_sentence_in_the_trash_too(alice: User, is_in_trash: bool):
    """A restored conversation must not contain what was forgotten while it was in the trash."""
    conversation = new_conversation(alice)
    asked, answered = say(
        conversation,
        f"Good morning! My locker at the swimming pool in Utrecht opens with {CODE}, and my towel is blue.",
        "Noted.",
    )
    entry = MemoryEntry.objects.create(
        user=alice,
        day=NOW.date(),
        text=f"The locker code is {CODE}.",
        conversation=conversation,
        first_message_id=asked.pk,
        last_message_id=answered.pk,
        created_at=NOW,
        updated_at=NOW,
    )
    index_conversation(conversation.pk)
    if is_in_trash:
        move_to_trash(alice, str(conversation.pk), days=30, now=NOW)
    forget_entry(alice, entry.pk, now=NOW)
    if is_in_trash:
        restore(alice, str(conversation.pk), now=NOW)
    assert CODE not in str(Message.objects.get(pk=asked.pk).parts)
    assert tables_with(CODE) == []
