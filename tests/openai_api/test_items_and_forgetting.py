"""Forgetting the items, instructions and metadata that clients of the OpenAI API store."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

import pytest

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.features.openai_api.actions import NewItem, add_items, keep_instructions, store_response
from chatapp.forgetting.services import forget_day, forget_message
from chatapp.operations import clock
from chatapp.operations.errors import NotFound
from chatapp.providers.actions import ensure_first_model
from tests.forgetting.everywhere import tables_with
from tests.openai_api.test_response_deletion import turn

pytestmark = pytest.mark.django_db(transaction=True)


def answered(user: User) -> tuple[Conversation, Message]:
    """Return a conversation with one question and its answer, both of today."""
    ensure_first_model()
    row = turn(user, {"input": "What is my key?"})
    return Conversation.objects.get(pk=row.run.conversation_id), Message.objects.get(pk=row.run.answer_id)


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_an_item_is_forgotten_with_the_day_on_which_it_was_added(alice: User, role: str) -> None:
    """A day is from midnight to midnight in the user's time zone."""
    conversation, _ = answered(alice)
    tomorrow = clock.now() + timedelta(days=1)
    [item] = add_items(
        user=alice,
        conversation_id=str(conversation.pk),
        items=[NewItem(role, "The diagnosis is sarcoidosis.")],
        now=tomorrow,
    )
    with suppress(NotFound):
        forget_day(alice, tomorrow.astimezone(alice.zone).date(), now=tomorrow)
    item.refresh_from_db()
    assert item.parts == []


def test_instructions_are_forgotten_with_the_day_on_which_they_were_sent(alice: User) -> None:
    conversation, _ = answered(alice)
    tomorrow = clock.now() + timedelta(days=1)
    text = "The user is Alice, who has sarcoidosis."
    pk = keep_instructions(
        user=alice, conversation_id=str(conversation.pk), text=text, after=None, now=tomorrow
    )
    with suppress(NotFound):
        forget_day(alice, tomorrow.astimezone(alice.zone).date(), now=tomorrow)
    assert Message.objects.get(pk=pk).parts == []


def test_an_item_added_after_an_answer_is_not_forgotten_with_it(alice: User) -> None:
    conversation, answer = answered(alice)
    [item] = add_items(
        user=alice,
        conversation_id=str(conversation.pk),
        items=[NewItem("assistant", "Words of another model.")],
        now=clock.now(),
    )
    forget_message(alice, answer.pk, now=clock.now())
    item.refresh_from_db()
    assert item.parts == [{"type": "text", "text": "Words of another model."}]


@pytest.mark.parametrize("said", ["question", "answer"])
def test_the_metadata_of_a_response_is_forgotten_with_its_turn(alice: User, said: str) -> None:
    ensure_first_model()
    body = {"input": "What is my key?", "metadata": {"reason": "sarcoidosis"}}
    row, other = turn(alice, body), turn(alice, {"input": "Hello", "metadata": {"of": "another turn"}})
    message = Message.objects.get(pk=getattr(row.run, f"{said}_id"))
    forget_message(alice, message.pk, now=clock.now())
    row.refresh_from_db()
    other.refresh_from_db()
    assert (row.metadata, other.metadata) == ({}, {"of": "another turn"})
    assert tables_with("sarcoidosis") == []


def test_a_response_that_is_stored_after_its_turn_was_forgotten_keeps_no_metadata(alice: User) -> None:
    ensure_first_model()
    first = turn(alice, {"input": "What is my key?"})
    forget_message(alice, first.run.answer_id, now=clock.now())
    first.delete()
    stored = store_response(
        user=alice,
        run_id=str(first.run_id),
        previous=None,
        owns_turn=True,
        metadata={"reason": "sarcoidosis"},
        now=clock.now(),
    )
    assert stored.metadata == {}
