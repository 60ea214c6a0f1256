"""Import and export of single conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from chatapp.conversations.models import Conversation, Message
from tests.api.program import Program
from tests.api.running import running_service

IMPORT = "/api/v1/conversations/import"


def take_in(client: Client, *messages: Any, **fields: Any) -> Any:
    return client.post(IMPORT, {"messages": list(messages), **fields}, content_type="application/json")


def message(text: Any = "Hello", role: Any = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def test_an_import_creates_an_ordinary_conversation(alice_client: Client) -> None:
    made = take_in(
        alice_client,
        message("Be kind.", "system"),
        message("Why is the sky blue?", created_at="2024-05-01T10:00:00+02:00"),
        message([{"type": "text", "text": "Rayleigh"}, {"type": "text", "text": "scattering"}], "assistant"),
    )
    assert made.status_code == 201
    assert made.json()["message_count"] == 3
    conversation = alice_client.get(f"/api/v1/conversations/{made.json()['id']}").json()
    assert conversation["title"] == "Why is the sky blue?"
    items = alice_client.get(f"/api/v1/conversations/{made.json()['id']}/messages").json()["items"]
    assert [item["content"] for item in items] == ["Be kind.", "Why is the sky blue?", "Rayleigh\nscattering"]
    assert [item["role"] for item in items] == ["system", "user", "assistant"]
    assert items[1]["created_at"] == "2024-05-01T08:00:00Z"
    assert [item["parent"] for item in items[1:]] == [item["id"] for item in items[:-1]]


@pytest.mark.sqlite
def test_a_hundred_thousand_messages_can_be_imported(alice_client: Client) -> None:
    messages = [message(f"Message {number}", ("user", "assistant")[number % 2]) for number in range(100_000)]
    made = take_in(alice_client, *messages, title="Long")
    assert made.status_code == 201, made.content
    assert made.json()["message_count"] == 100_000
    assert Message.objects.count() == 100_000
    newest = alice_client.get(f"/api/v1/conversations/{made.json()['id']}/messages", {"limit": 1}).json()
    assert newest["items"][0]["content"] == "Message 99999"


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (message(role="robot"), "messages.1.role"),
        (message(role=["user"]), "messages.1.role"),
        (message(5), "messages.1.content"),
        (message([{"type": "image", "file_id": "a"}]), "messages.1.content"),
        (message(created_at="yesterday"), "messages.1.created_at"),
        (message(created_at=5), "messages.1.created_at"),
        (message(created_at="0001-01-01T00:00:00+14:00"), "messages.1.created_at"),
        ("Hello", "messages.1"),
        (message(speed=1), "messages.1.speed"),
        ({}, "messages.1.role"),
    ],
    ids=str,
)
def test_invalid_messages_return_422_with_their_paths(alice_client: Client, wrong: Any, field: str) -> None:
    answer = take_in(alice_client, message(), wrong)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == field
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [([], 422), ({}, 422), ({"messages": []}, 422), ({"messages": {}}, 422), ("{", 400), ("", 400)],
    ids=str,
)
def test_invalid_imports_are_refused(alice_client: Client, body: Any, status: int) -> None:
    raw = body if isinstance(body, str) else json.dumps(body)
    assert alice_client.generic("POST", IMPORT, raw, content_type="application/json").status_code == status


def test_an_invalid_title_is_named_in_the_error(alice_client: Client) -> None:
    answer = take_in(alice_client, message(), title=5)
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == "title"


def test_at_most_20_errors_of_an_import_are_listed(alice_client: Client) -> None:
    answer = take_in(alice_client, *({} for _ in range(1_000)))
    assert len(answer.json()["error"]["details"]) == 20


def test_characters_that_cannot_be_stored_are_replaced(alice_client: Client) -> None:
    made = take_in(alice_client, message("a\x00b\ud800c"))
    assert made.status_code == 201
    assert Message.objects.get().parts[0]["text"] == "a\ufffdb\ufffdc"


async def export(program: Program, conversation: str, **query: str) -> tuple[str, dict[str, str]]:
    answer = await program.get(f"conversations/{conversation}/export", **query)
    assert answer.status_code == 200
    return answer.content.decode(), answer.headers


async def test_an_export_can_be_imported_again(alice_program: Program) -> None:
    messages = [
        message(f"Zeile {number} äöü\n```py\nx = 1\n```", ("user", "assistant")[number % 2])
        for number in range(1_203)
    ]
    async with running_service():
        made = await alice_program.post("conversations/import", messages=messages, title="Über uns")
        text, headers = await export(alice_program, made.json()["id"])
        assert headers["content-type"].startswith("application/json")
        assert headers["content-disposition"] == 'attachment; filename="ber-uns.json"'
        exported = json.loads(text)
        assert exported["title"] == "Über uns"
        assert [item["content"] for item in exported["messages"]] == [item["content"] for item in messages]
        again = await alice_program.post(
            "conversations/import", title=exported["title"], messages=exported["messages"]
        )
        assert again.json()["message_count"] == 1_203
        second, _ = await export(alice_program, again.json()["id"])
        assert [item["content"] for item in json.loads(second)["messages"]] == [
            item["content"] for item in messages
        ]


async def test_a_conversation_can_be_exported_as_markdown(alice_program: Program) -> None:
    async with running_service():
        made = await alice_program.post(
            "conversations/import",
            messages=[message("Why?"), message("Because.", "assistant")],
            title="Reasons",
        )
        text, headers = await export(alice_program, made.json()["id"], format="markdown")
    assert headers["content-type"].startswith("text/markdown")
    assert text.startswith("# Reasons\n\n## You, ")
    assert "Why?\n\n## Assistant, " in text
    assert text.endswith("Because.\n")


async def test_an_empty_conversation_is_exported_empty(alice_program: Program) -> None:
    async with running_service():
        made = await alice_program.post("conversations")
        text, _ = await export(alice_program, made.json()["id"])
        assert json.loads(text)["messages"] == []
        assert (
            await alice_program.get(f"conversations/{made.json()['id']}/export", format="pdf")
        ).status_code == 422


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}], "titel": "Typo"}, "titel"),
        ({"messages": [{"role": "user", "content": "Hi", "creatd_at": "2026-01-01"}]}, "creatd_at"),
    ],
)
def test_unknown_fields_of_an_import_are_named(
    alice_client: Client, body: dict[str, Any], field: str
) -> None:
    answer = alice_client.post("/api/v1/conversations/import", body, content_type="application/json")
    assert answer.status_code == 422
    assert field in answer.json()["error"]["message"]
