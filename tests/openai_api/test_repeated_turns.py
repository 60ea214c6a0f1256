"""Turns that are sent again with their idempotency key."""

from __future__ import annotations

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.features.openai_api.turns import NewTurn, begin_turn
from chatapp.operations import clock
from chatapp.providers.actions import ensure_first_model

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "retry-1"


def test_a_key_used_in_a_deleted_conversation_does_not_drop_the_instructions(alice: User) -> None:
    ensure_first_model()
    first = create_conversation(user=alice, now=clock.now())
    begin_turn(alice, first, NewTurn("Hello", client_id=KEY), None)
    Conversation.objects.filter(pk=first.pk).update(user=None)  # being deleted, or in the trash
    second = create_conversation(user=alice, now=clock.now())
    turn = NewTurn("Hello", instructions="Answer in French.", client_id=KEY)
    receipt = begin_turn(alice, second, turn, None)
    assert receipt.is_new
    assert receipt.conversation_id == str(second.pk)
    kept = Message.objects.filter(conversation=second, role="system")
    assert kept.exists(), "the question was stored, and its instructions were not"
