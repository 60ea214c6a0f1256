"""Who am I, what may I use, what did I spend, which tokens have I."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from chatapp.accounts.models import ApiToken, User
from chatapp.providers.models import ModelConfig, Usage
from tests.memory_store.rows import new_conversation

V1 = "/api/v1"


def post(client: Client, path: str, **fields: Any) -> Any:
    return client.post(f"{V1}/{path}", fields, content_type="application/json")


def patch(client: Client, path: str, **fields: Any) -> Any:
    return client.patch(f"{V1}/{path}", fields, content_type="application/json")


def test_me_can_be_renamed_and_moved(alice_client: Client) -> None:
    changed = patch(alice_client, "me", name=" Alice  A. ", time_zone="Asia/Tokyo").json()
    assert (changed["name"], changed["time_zone"]) == ("Alice A.", "Asia/Tokyo")
    assert alice_client.get(f"{V1}/me").json() == changed


@pytest.mark.parametrize(
    "fields",
    [{"time_zone": "Mars/Base"}, {"time_zone": "../etc/passwd"}, {"time_zone": ""}, {"name": None}],
    ids=str,
)
def test_what_is_no_name_or_zone_is_422(alice_client: Client, fields: dict[str, Any]) -> None:
    answer = patch(alice_client, "me", **fields)
    assert answer.status_code == 422


def test_nobody_makes_themselves_an_operator(alice_client: Client, alice: User) -> None:
    patch(alice_client, "me", is_superuser=True, is_staff=True, email="root@example.com")
    alice.refresh_from_db()
    assert (alice.is_superuser, alice.is_staff, alice.email) == (False, False, "alice@example.com")


def test_models_are_those_that_are_switched_on_without_their_keys(
    alice_client: Client, model: ModelConfig
) -> None:
    ModelConfig.objects.create(name="Off", model_id="off", enabled=False)
    ModelConfig.objects.create(name="Other", model_id="other", api_key_encrypted="secret")
    answer = alice_client.get(f"{V1}/models")
    items = answer.json()["items"]
    assert [item["name"] for item in items] == ["Test", "Other"]
    assert items[0]["context_size"] == 32_000
    assert items[0]["max_output_tokens"] == 4_000
    assert b"secret" not in answer.content
    assert b"127.0.0.1" not in answer.content


def test_there_is_one_agent(alice_client: Client) -> None:
    [agent] = alice_client.get(f"{V1}/agents").json()["items"]
    assert agent["id"] == "default"


def spend(user: User, purpose: str = "chat", model: str = "m", cost: str | None = "0.5", **more: Any) -> None:
    Usage.objects.create(
        user=user,
        purpose=purpose,
        model_name=model,
        input_tokens=10,
        output_tokens=5,
        cached_tokens=2,
        cost=Decimal(cost) if cost else None,
        exact=True,
        **more,
    )


def test_usage_is_ones_own_by_what_is_asked(alice_client: Client, alice: User, bob: User) -> None:
    conversation = new_conversation(alice)
    spend(alice, conversation=conversation)
    spend(alice, "compaction", "fast", None)
    spend(bob)
    by_purpose = alice_client.get(f"{V1}/usage", {"group_by": "purpose"}).json()
    assert [(row["key"], row["calls"], row["cost"]) for row in by_purpose["items"]] == [
        ("chat", 1, 0.5),
        ("compaction", 1, None),
    ]
    assert by_purpose["total"] == {
        "key": "total",
        "calls": 2,
        "input_tokens": 20,
        "output_tokens": 10,
        "cached_tokens": 4,
        "cost": 0.5,
        "kept_out_tokens": 0,
        "compaction_saved": None,
        "cache_saved": None,
    }
    by_model = alice_client.get(f"{V1}/usage", {"group_by": "model"}).json()
    assert [row["key"] for row in by_model["items"]] == ["fast", "m"]
    by_conversation = alice_client.get(f"{V1}/usage", {"group_by": "conversation"}).json()
    assert {row["key"] for row in by_conversation["items"]} == {"", str(conversation.pk)}
    assert len(alice_client.get(f"{V1}/usage").json()["items"]) == 1


def test_usage_is_of_the_period(alice_client: Client, alice: User) -> None:
    spend(alice)
    Usage.objects.update(created_at="2026-03-05T23:30:00Z")
    inside = alice_client.get(f"{V1}/usage", {"from": "2026-03-05", "to": "2026-03-05"}).json()
    assert [row["key"] for row in inside["items"]] == ["2026-03-05"]
    assert alice_client.get(f"{V1}/usage", {"from": "2026-03-06", "to": "2026-03-07"}).json()["items"] == []


@pytest.mark.parametrize(
    "query",
    [
        {"from": "soon"},
        {"group_by": "colour"},
        {"from": "2026-02-02", "to": "2026-01-01"},
        {"from": "0001-01-01", "to": "9999-12-31"},
        {"to": "0001-01-01"},
        {"to": "9999-12-31"},
    ],
    ids=str,
)
def test_a_period_that_is_none_is_422(alice_client: Client, query: dict[str, str]) -> None:
    assert alice_client.get(f"{V1}/usage", query).status_code == 422


def test_a_token_is_told_once_and_works(alice_client: Client, client: Client) -> None:
    made = post(alice_client, "tokens", name="ci", scopes=["read"])
    assert made.status_code == 201
    secret = made.json()["token"]
    assert client.get(f"{V1}/me", headers={"Authorization": f"Bearer {secret}"}).json()["scopes"] == ["read"]
    listed = alice_client.get(f"{V1}/tokens")
    assert secret not in listed.content.decode()
    row = next(item for item in listed.json()["items"] if item["name"] == "ci")
    assert secret.startswith(row["prefix"])
    assert row["last_used_at"] is not None
    assert alice_client.delete(f"{V1}/tokens/{row['id']}").status_code == 204
    assert client.get(f"{V1}/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_a_token_makes_none_that_may_do_more(api_client: Callable[..., Client], alice: User) -> None:
    narrow = api_client(alice, ["chat"])
    refused = post(narrow, "tokens", scopes=["chat", "memory"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")
    assert post(narrow, "tokens").json()["scopes"] == ["chat"]


def test_a_token_deletes_none_that_may_do_more(api_client: Callable[..., Client], alice: User) -> None:
    wide = api_client(alice, ["chat", "memory"])
    token = ApiToken.objects.get()
    narrow = api_client(alice, ["chat"])
    assert narrow.delete(f"{V1}/tokens/{token.pk}").status_code == 403
    assert wide.get(f"{V1}/me").status_code == 200


def test_only_operators_have_admin_tokens(browser_client: Callable[[User], Client], alice: User) -> None:
    client = browser_client(alice)
    client.cookies["csrftoken"] = "a" * 32
    answer = client.post(
        f"{V1}/tokens",
        {"scopes": ["admin"]},
        content_type="application/json",
        headers={"X-CSRFToken": "a" * 32},
    )
    assert answer.status_code == 403
