"""Deleting a response forgets its question and answer, but no other messages of the conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.features.openai_api.actions import NewItem, add_items, begin_conversation
from chatapp.features.openai_api.models import StoredResponse
from chatapp.features.openai_api.response_schemas import NewResponse
from chatapp.features.openai_api.response_shapes import named
from chatapp.features.openai_api.responses import _begin, _understood
from chatapp.features.openai_api.turns import NewTurn
from chatapp.operations import clock
from chatapp.providers.actions import ensure_first_model
from chatapp.runs.models import Run

pytestmark = pytest.mark.django_db(transaction=True)


def end_of(row: StoredResponse) -> None:
    """End the run as a worker does."""
    Run.objects.filter(pk=row.run_id).update(status="complete")
    Message.objects.filter(pk=row.run.answer_id).update(
        status="complete", parts=[{"type": "text", "text": "It is BLUE-42."}]
    )


def turn(user: User, body: dict[str, Any]) -> StoredResponse:
    """Do what `POST /v1/responses` does with the body, but complete the run without a model call."""
    asked, answer = _understood(user, NewResponse.model_validate(body))
    assert asked.is_stored or answer
    _begin(user, asked, answer, NewTurn(text="What is my key?", field="input"))
    row = StoredResponse.objects.select_related("run").order_by("-created_at", "-pk")[0]
    end_of(row)
    return row


def test_earlier_messages_that_belong_to_no_response_are_kept(
    alice: User, api_client: Callable[..., Client]
) -> None:
    ensure_first_model()
    talk = [NewItem("user", "My key is BLUE-42."), NewItem("assistant", "Noted.")]
    # The messages have no runs, as in a conversation that was imported, copied or begun with items.
    conversation = begin_conversation(user=alice, items=talk, metadata={}, now=clock.now())
    answer = conversation.messages.get(role="assistant")
    row = turn(
        alice,
        {
            "input": [
                {"role": "user", "content": "My key is BLUE-42."},
                {"role": "assistant", "content": "Noted.", "id": named("msg", answer.pk)},
                {"role": "user", "content": "What is my key?"},
            ]
        },
    )
    assert row.run.conversation_id == conversation.pk
    deleted = api_client(alice).delete(f"/v1/responses/{named('resp', row.pk)}")
    assert deleted.status_code == 200, deleted.content
    assert Conversation.objects.filter(pk=conversation.pk).exists(), "all of it was forgotten"


def test_items_added_after_a_response_are_kept(alice: User, api_client: Callable[..., Client]) -> None:
    ensure_first_model()
    row = turn(alice, {"input": "What is my key?"})
    conversation_id = row.run.conversation_id
    said = [NewItem("user", "My key is BLUE-42.")]
    add_items(user=alice, conversation_id=str(conversation_id), items=said, now=clock.now())
    deleted = api_client(alice).delete(f"/v1/responses/{named('resp', row.pk)}")
    assert deleted.status_code == 200, deleted.content
    left = Message.objects.filter(conversation_id=conversation_id, conversation__user=alice)
    assert left.exclude(parts=[]).exists(), "the item was forgotten with the response"
