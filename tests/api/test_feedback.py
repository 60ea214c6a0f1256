"""Ratings of answers are given, changed and withdrawn, and counted for operators without any text."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.agent_presets.models import Agent
from chatapp.conversations.models import Conversation, Message
from chatapp.features.feedback.models import AnswerFeedback
from chatapp.forgetting.services import forget_all, forget_whole_conversation
from chatapp.operations import clock
from tests.memory_store.rows import new_conversation, say

API = "/api/v1"


@pytest.fixture
def chat(alice: User) -> Conversation:
    """Return a conversation with an agent, and with an answer by `test-model`."""
    row = new_conversation(alice, "Secret")
    say(row, "Where is the harbour?", "Xylophone street.")
    Message.objects.filter(role="assistant").update(model_name="test-model")
    Conversation.objects.update(agent=Agent.objects.create(name="Guide"))
    return row


def rate(client: Client, chat: Conversation, role: str = "assistant", **fields: Any) -> Any:
    message = Message.objects.get(conversation=chat, role=role)
    path = f"{API}/conversations/{chat.pk}/messages/{message.pk}/feedback"
    if not fields:
        return client.delete(path)
    return client.put(path, fields, content_type="application/json")


def given(client: Client, chat: Conversation) -> list[tuple[str, str]]:
    items = client.get(f"{API}/conversations/{chat.pk}/feedback").json()["items"]
    return [(item["rating"], item["reason"]) for item in items]


def test_a_new_rating_replaces_the_old_one_and_can_be_withdrawn(
    alice_client: Client, charlie_client: Client, chat: Conversation
) -> None:
    assert rate(alice_client, chat, rating="good").status_code == 200
    assert rate(alice_client, chat, rating="bad", reason="wrong").json()["reason"] == "wrong"
    assert given(alice_client, chat) == [("bad", "wrong")]
    assert rate(alice_client, chat, role="user", rating="good").status_code == 422
    assert rate(alice_client, chat, rating="good", reason="my own words").status_code == 422
    assert rate(charlie_client, chat, rating="good").status_code == 404
    assert charlie_client.get(f"{API}/conversations/{chat.pk}/feedback").status_code == 404
    for _ in ("at first", "and again"):
        assert rate(alice_client, chat).status_code == 204
    assert given(alice_client, chat) == []


def test_operators_see_counts_by_model_and_agent_and_no_text(
    alice: User, alice_client: Client, admin_client: Client, chat: Conversation
) -> None:
    rate(alice_client, chat, rating="bad", reason="wrong")
    forget_whole_conversation(alice, chat.pk, now=clock.now())
    page = admin_client.get("/admin/chatapp/answerfeedback/").content.decode()
    shown = " ".join(page.split())
    assert '<th scope="row">test-model</th><td>Guide</td><td>0</td><td>1</td>' in shown
    assert "not correct 1" in shown
    assert "ylophone" not in page
    forget_all(alice, now=clock.now())
    assert not AnswerFeedback.objects.exists()
