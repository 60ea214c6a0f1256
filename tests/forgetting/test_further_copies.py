"""What was made of something is found wherever it was carried, and what says it again is proposed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from agents.events import Recall, RecalledItem
from chatapp.accounts.models import User
from chatapp.context.models import RequestText
from chatapp.conversations.models import Conversation, Message
from chatapp.long_term.actions.entries import note_sources
from chatapp.long_term.models import Consolidation, MemoryEntry
from chatapp.realtime import event_log
from tests.forgetting.everywhere import tables_with
from tests.forgetting.lives import SAID, SECRET, Life, live
from tests.memory_store.rows import NOW, new_conversation, say

Clients = Callable[..., Client]


def forget(client: Client, **wish: str) -> dict:
    answer = client.post("/api/v1/memory/forget", json.dumps(wish), content_type="application/json")
    assert answer.status_code == 200, answer.content
    return answer.json()


def tell_of_entry(life: Life, *, in_event: bool) -> Conversation:
    """Elsewhere the entry is recalled, not the message it was made of."""
    elsewhere = new_conversation(life.user, "Another day", at=NOW + timedelta(days=1))
    text = f"2026-11-21\nmemory: {life.entry.text}"
    content = json.dumps({"parts": [{"type": "text", "text": text}]})
    RequestText.objects.create(conversation=elsewhere, sha256="1" * 64, source="recall", content=content)
    if in_event:
        source = {"kind": "entry", "entry_id": str(life.entry.pk)}
        item = RecalledItem(source=source, tokens=9, preview=life.entry.text)
        event_log.append(elsewhere, Recall(conversation_id=str(elsewhere.pk), at=NOW, items=[item]))
    return elsewhere


@pytest.mark.mechanism("forgetting.derived")
@pytest.mark.parametrize("in_event", [True, False], ids=["told", "in a request alone"])
@pytest.mark.parametrize("what", ["message", "conversation"])
def test_an_entry_made_of_it_goes_from_where_it_was_recalled(
    alice: User, api_client: Clients, what: str, in_event: bool
) -> None:
    life = live(alice)
    tell_of_entry(life, in_event=in_event)
    ids = {"message": life.told.pk, "conversation": life.conversation.pk}
    forget(api_client(alice), **{f"{what}_id": str(ids[what])})
    assert tables_with(SECRET) == []


def say_again(life: Life) -> Message:
    """The entry is known: another conversation is one more source of it."""
    again = new_conversation(life.user, at=NOW + timedelta(days=2))
    said, last = say(again, f"As I told you: {SAID} And bread is cheap.", "Indeed.")
    note_sources(
        entry_ids=[str(life.entry.pk)],
        conversation=again,
        first_message_id=said.pk,
        last_message_id=last.pk,
        at=NOW,
    )
    return said


@pytest.mark.mechanism("forgetting.proposals")
def test_an_entry_takes_the_sentences_of_all_its_sources(alice: User, api_client: Clients) -> None:
    life = live(alice)
    said = say_again(life)
    forget(api_client(alice), entry_id=str(life.entry.pk))
    said.refresh_from_db()
    assert said.parts == [{"type": "text", "text": "And bread is cheap."}]
    assert tables_with(SECRET) == []


@pytest.mark.mechanism("forgetting.proposals")
@pytest.mark.parametrize("what", ["message", "conversation"])
def test_what_was_said_once_more_elsewhere_is_proposed(alice: User, api_client: Clients, what: str) -> None:
    life = live(alice)
    said = say_again(life)
    ids = {"message": life.told.pk, "conversation": life.conversation.pk}
    answer = forget(api_client(alice), **{f"{what}_id": str(ids[what])})
    assert str(said.pk) in [item["id"] for item in answer["proposal"]["items"]]


@pytest.mark.mechanism("forgetting.proposals")
def test_it_is_proposed_where_the_entry_says_nothing_else(alice: User, api_client: Clients) -> None:
    life = live(alice)
    said = say_again(life)
    life.entry.text = SAID
    life.entry.save()
    answer = forget(api_client(alice), message_id=str(life.told.pk))
    assert not MemoryEntry.objects.filter(pk=life.entry.pk).exists()
    assert str(said.pk) in [item["id"] for item in answer["proposal"]["items"]]


def test_what_a_failed_consolidation_says_of_it_goes(alice: User, api_client: Clients) -> None:
    life = live(alice)
    refusal = f"The model failed (invalid): 400. You sent: {SAID}"
    Consolidation.objects.create(user=alice, status="failed", error=refusal, created_at=NOW)
    forget(api_client(alice), message_id=str(life.told.pk))
    assert tables_with(SECRET) == []


@pytest.mark.mechanism("forgetting.derived")
@pytest.mark.parametrize("place", ["request", "request alone", "tool result", "both"])
def test_what_an_answer_of_a_conversation_said_goes_from_where_it_was_recalled(
    alice: User, api_client: Clients, place: str
) -> None:
    conversation = new_conversation(alice)
    _, answer = say(conversation, "Invent a code for the gate.", f"Take {SECRET}-7731 for it.")
    elsewhere = new_conversation(alice, at=NOW + timedelta(days=1))
    _, looked_up = say(elsewhere, "Which one did you invent?", "I look it up.")
    recalled = f"2026-11-21\nassistant: […] Take {SECRET}-7731 for it. […]"
    source = {
        "kind": "message",
        "message_id": str(answer.pk),
        "conversation_id": str(conversation.pk),
    }
    item = RecalledItem(source=source, tokens=9, preview=f"Take {SECRET}-7731 for it.")
    if place != "request alone":
        event_log.append(elsewhere, Recall(conversation_id=str(elsewhere.pk), at=NOW, items=[item]))
    if place != "tool result":
        content = json.dumps({"parts": [{"type": "text", "text": recalled}]})
        RequestText.objects.create(conversation=elsewhere, sha256="1" * 64, source="recall", content=content)
    if place != "request":
        result = {"type": "tool_result", "call_id": "1", "name": "memory_search", "text": recalled}
        Message.objects.filter(pk=looked_up.pk).update(role="tool", parts=[result])
    forget(api_client(alice), conversation_id=str(conversation.pk))
    assert tables_with(SECRET) == []
