"""A fork keeps what the source knows of its messages: whether memory was paused, and what its title was made of."""

from __future__ import annotations

from datetime import timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import update_conversation
from chatapp.conversations.models import Conversation
from chatapp.features.forking.actions import fork_conversation
from chatapp.forgetting.services import forget_message
from chatapp.long_term.selectors.pauses import was_paused
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("is_still_paused", [False, True])
def test_messages_of_a_memory_pause_are_never_learned_in_a_fork(alice: User, is_still_paused: bool) -> None:
    """docs/memory.md promises that messages of a pause are never learned, not even after the pause."""
    source = new_conversation(alice)
    pk = str(source.pk)
    update_conversation(user=alice, conversation_id=pk, now=NOW - timedelta(minutes=1), memory="paused")
    source.refresh_from_db()
    say(source, "My diagnosis is sarcoidosis.", "I am sorry to hear that.", at=NOW)
    later = NOW + timedelta(hours=1)
    if not is_still_paused:
        update_conversation(user=alice, conversation_id=pk, now=later, memory="on")
    source.refresh_from_db()
    assert was_paused(source, 1)
    made = fork_conversation(user=alice, source_id=source.pk, message_id=None, now=later + timedelta(hours=1))
    fork = Conversation.objects.get(pk=made.pk)
    assert fork.messages.count() == 2
    assert was_paused(fork, 1), "a compaction of the fork would write entries of it"


def test_a_generated_title_is_forgotten_with_its_messages_in_a_fork(alice: User) -> None:
    source = new_conversation(alice, "Coping with sarcoidosis")
    say(source, "I was told today what it is that my lungs have.", "It can be treated.")
    source.title_made_of = 1  # as `store_title` sets it
    source.save()
    made = fork_conversation(user=alice, source_id=source.pk, message_id=None, now=NOW)
    for conversation in (source, Conversation.objects.get(pk=made.pk)):
        for message in conversation.messages.order_by("position"):
            forget_message(alice, message.pk, now=NOW)
        conversation.refresh_from_db()
        assert "sarcoidosis" not in conversation.title, conversation.pk == made.pk
