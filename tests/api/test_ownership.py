"""alice owns everything; charlie gets 404 on every path, for every id, in every parameter."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from chatapp.accounts.models import ApiToken, User
from chatapp.conversations.models import Conversation
from tests.api.conftest import Clients
from tests.api.description import all_operations, is_for_operators
from tests.api.everything import one_of_everything
from tests.memory_store.rows import new_conversation

BODIES = {
    ("post", "/api/v1/conversations/{conversation_id}/messages"): {"content": "Hi"},
    ("post", "/api/v1/conversations/{conversation_id}/inject"): {"content": "Hi"},
    ("patch", "/api/v1/conversations/{conversation_id}/messages/{message_id}"): {"content": "Hi"},
    ("patch", "/api/v1/conversations/{conversation_id}"): {"title": "Mine now"},
    ("patch", "/api/v1/conversations/{conversation_id}/compactions/{compaction_id}"): {"summary": "Mine"},
    ("patch", "/api/v1/memory/entries/{entry_id}"): {"text": "Mine"},
    ("put", "/api/v1/conversations/{conversation_id}/messages/{message_id}/feedback"): {"rating": "good"},
    ("post", "/api/v1/memory/entries/{entry_id}/revert"): {"revision": 1},
    ("post", "/api/v1/conversations/{conversation_id}/read"): {"message_count": 1},
}


def all_addresses() -> list[tuple[str, str]]:
    """Return every operation with an id in its path, except those for operators only."""
    return [pair for pair in all_operations() if "_id}" in pair[1] and not is_for_operators(pair[1])]


@pytest.fixture
def ids(alice: User, alice_client: Client) -> dict[str, str]:
    return one_of_everything(alice)


def call(client: Client, method: str, path: str, ids: dict[str, str]) -> Any:
    body = BODIES.get((method, path), {})
    return client.generic(
        method.upper(), path.format(**ids), json.dumps(body), content_type="application/json"
    )


@pytest.mark.mechanism("contract.ownership")
def test_rows_of_other_users_are_not_found(charlie_client: Client, ids: dict[str, str]) -> None:
    before = list(Conversation.objects.values())
    for method, path in all_addresses():
        answer = call(charlie_client, method, path, ids)
        assert answer.status_code == 404, (method, path)
        assert b"ylophone" not in answer.content, (method, path)
        assert list(Conversation.objects.values()) == before, (method, path)
        assert ApiToken.objects.filter(pk=ids["token_id"]).exists(), (method, path)


def test_anonymous_requests_return_401(client: Client, ids: dict[str, str]) -> None:
    for method, path in all_addresses():
        assert call(client, method, path, ids).status_code == 401, (method, path)


@pytest.mark.parametrize(
    "made_up", ["nonsense", "\u2603", "0", None], ids=["word", "snowman", "zero", "unknown"]
)
def test_an_unknown_id_is_not_found(alice_client: Client, ids: dict[str, str], made_up: str | None) -> None:
    made_up_ids = {name: made_up or str(uuid4()) for name in ids}
    for method, path in all_addresses():
        assert call(alice_client, method, path, made_up_ids).status_code == 404, (method, path)


def test_a_nested_id_must_belong_to_the_conversation_in_the_path(
    charlie_client: Client, charlie: User, ids: dict[str, str]
) -> None:
    own_ids = {**ids, "conversation_id": str(new_conversation(charlie).pk)}
    below = [pair for pair in all_addresses() if pair[1].count("_id}") == 2]
    assert below
    for method, path in below:
        assert call(charlie_client, method, path, own_ids).status_code == 404, (method, path)


@pytest.mark.mechanism("contract.ownership")
@pytest.mark.parametrize("field", ["parent", "attachments", "content"])
def test_an_id_in_a_body_must_belong_to_the_user(
    charlie_client: Client, charlie: User, ids: dict[str, str], field: str
) -> None:
    values = {
        "parent": ids["message_id"],
        "attachments": [ids["file_id"]],
        "content": [{"type": "image", "file_id": ids["file_id"]}],
    }
    body = {"content": "Hi", field: values[field]}
    path = f"/api/v1/conversations/{new_conversation(charlie).pk}/messages"
    answer = charlie_client.post(path, body, content_type="application/json")
    assert answer.status_code == 404


def test_a_position_in_another_users_conversation_is_not_found(
    charlie_client: Client, charlie: User, ids: dict[str, str]
) -> None:
    path = f"/api/v1/conversations/{new_conversation(charlie).pk}/messages"
    assert charlie_client.get(path, {"before": ids["message_id"]}).status_code == 404


def test_the_list_of_tokens_contains_only_the_users_own(charlie_client: Client, ids: dict[str, str]) -> None:
    assert len(charlie_client.get("/api/v1/tokens").json()["items"]) == 1


@pytest.mark.parametrize(("method", "path"), [pair for pair in all_operations() if is_for_operators(pair[1])])
def test_operations_for_operators_need_the_admin_scope(
    charlie_client: Client,
    api_client: Clients,
    admin_user: User,
    ids: dict[str, str],
    method: str,
    path: str,
) -> None:
    without_scope = api_client(admin_user, ["chat", "read", "memory"])
    for client in (charlie_client, without_scope):
        answer = call(client, method, path, ids)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope")
    assert call(Client(), method, path, ids).status_code == 401
