"""Checks what `benchmarks/recall.py` measures, on a history of our own: contexts contain the answers to questions."""

import json

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.providers.actions import ensure_first_model
from chatapp.recall.models import SearchDocument
from tests.memory_store.test_memory_api import Clients
from tests.search.long_friendship import ASKED, Asked, lines

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


@pytest.fixture
def browser(alice: User, api_client: Clients) -> Client:
    ensure_first_model()
    return api_client(alice)


@pytest.fixture
def friendship(browser: Client) -> str:
    messages = [
        {"role": line.role, "content": line.text, "created_at": line.at.isoformat()} for line in lines()
    ]
    return str(post(browser, "import", {"title": "Ines", "messages": messages})["id"])


def post(client: Client, path: str, body: dict[str, object]) -> dict[str, object]:
    answer = client.post(f"/api/v1/conversations/{path}", json.dumps(body), content_type="application/json")
    assert answer.status_code in (200, 201), answer.content
    return answer.json()


def texts_for(client: Client, conversation_id: str, question: str, budget: int) -> list[str]:
    shown = post(client, f"{conversation_id}/context", {"query": question, "budget_tokens": budget})
    assert sum(message["tokens"] for message in shown["messages"]) == shown["total_tokens"] <= budget
    return [message["content"] for message in shown["messages"]]


def share_held(asked: Asked, texts: list[str]) -> float:
    whole = [line.text for line in lines() if line.text.startswith(asked.answers)]
    assert len(whole) == len(asked.answers)
    return sum(any(line in text for text in texts) for line in whole) / len(whole)


@pytest.mark.mechanism("ours.recall")
def test_the_context_contains_the_answering_turns_word_for_word(browser: Client, friendship: str):
    for conversation_id in (friendship, new_conversation(browser)):
        shares = {
            asked.question: share_held(asked, texts_for(browser, conversation_id, asked.question, 500))
            for asked in ASKED
        }
        assert sum(shares.values()) / len(shares) >= 0.95, shares


def new_conversation(client: Client) -> str:
    answer = client.post("/api/v1/conversations", "{}", content_type="application/json")
    return str(answer.json()["id"])


@pytest.mark.mechanism("ours.recall-budget")
def test_no_context_exceeds_its_budget_in_tokens_or_characters(browser: Client, friendship: str):
    for budget in (300, 500, 2_000):
        for asked in ASKED[:5]:
            texts = texts_for(browser, friendship, asked.question, budget)
            assert sum(map(len, texts)) <= 4 * budget
            assert texts[-1] == asked.question


@pytest.mark.mechanism("ours.recall-gate")
def test_small_talk_recalls_nothing(browser: Client, friendship: str):
    for said in (
        "Thanks!",
        "Good morning",
        "lol",
        "Can you help me?",
        "Write me a poem",
        "Kannst du mir helfen?",
    ):
        shown = post(browser, f"{friendship}/context", {"query": said, "budget_tokens": 2_000})
        assert shown["recalled"] == []
        assert "recall" not in {message["source"] for message in shown["messages"]}


@pytest.mark.mechanism("ours.recall-sources")
def test_recalled_items_link_to_their_messages_best_first(browser: Client, friendship: str):
    asked = {"query": "What is Tomas's dog called?", "budget_tokens": 600}
    recalled = post(browser, f"{friendship}/context", asked)["recalled"]
    previews = [item["preview"] for item in recalled]
    assert any("Biscuit" in preview for preview in previews[:12])
    assert all(item["source"]["conversation_id"] == friendship for item in recalled)
    page = browser.get(f"/api/v1/conversations/{friendship}/messages?limit=1").json()
    assert {*recalled[0]["source"]} == {"kind", "conversation_id", "message_id"}
    assert page["items"][0]["id"] not in {item["source"]["message_id"] for item in recalled}


def test_looking_at_a_context_writes_nothing(browser: Client, friendship: str):
    before = SearchDocument.objects.count()
    texts_for(browser, friendship, "What is Tomas's dog called?", 600)
    assert SearchDocument.objects.count() == before == len(lines())
