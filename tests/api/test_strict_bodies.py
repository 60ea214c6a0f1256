"""A body is what the description says: a text is no number, and null only where it is named."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.providers.models import ModelConfig
from tests.api.description import describe_api
from tests.api.program import Program

CONVERSATIONS = "/api/v1/conversations"


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (CONVERSATIONS, "temporary", "true"),
        (CONVERSATIONS, "temporary", 1),
        ("/api/v1/agents", "temperature", "0.5"),
        (f"{CONVERSATIONS}/ID/read", "message_count", "1"),
        (f"{CONVERSATIONS}/ID/read", "message_count", True),
        (f"{CONVERSATIONS}/ID/messages", "stream", "no"),
        ("/v1/chat/completions", "temperature", "0.5"),
        ("/v1/chat/completions", "stream", 0),
    ],
)
def test_a_value_of_another_type_is_refused_by_the_name_of_its_field(
    alice_client: Client, model: ModelConfig, path: str, field: str, value: Any
) -> None:
    made = alice_client.post(CONVERSATIONS, {}, "application/json").json()["id"]
    body = {"content": "Hello"} if path.endswith("messages") else {}
    body = {"name": "Strict"} if path.endswith("agents") else body
    body = {"messages": [{"role": "user", "content": "Hello"}]} if path.startswith("/v1") else body
    answer = alice_client.post(path.replace("ID", made), {**body, field: value}, "application/json")
    told = answer.json()["error"]
    assert answer.status_code in (400, 422), answer.content
    assert field == (told.get("param") or told["details"][0]["field"])


def test_null_is_described_where_it_is_accepted_and_nowhere_else(alice_client: Client) -> None:
    made = alice_client.post(CONVERSATIONS, {}, "application/json").json()["id"]
    fields = describe_api()["components"]["schemas"]["ConversationChanges"]["properties"]
    described = {name for name, field in fields.items() if {"type": "null"} in field.get("anyOf", ())}
    accepted = {
        name
        for name in fields
        if alice_client.patch(f"{CONVERSATIONS}/{made}", {name: None}, "application/json").status_code == 200
    }
    assert described == accepted
    assert {"agent", "folder"} <= accepted
    assert "title" not in accepted


@pytest.mark.parametrize("path", ["memory/profile", "memory/days/2026-11-21"])
async def test_an_empty_markdown_empties_what_it_replaces(
    alice: User, alice_program: Program, path: str
) -> None:
    written = {"headers": {"content-type": "text/markdown"}}
    await alice_program.call("PUT", path, body=b"## 10:00\n\nKeeps bees.\n", **written)
    answer = await alice_program.call("PUT", path, body=b"", **written)
    assert answer.status_code == 200, answer.content
    assert "bees" not in answer.json()["markdown"]
    assert (await alice_program.call("PUT", path, body=b"")).status_code == 422  # as JSON
