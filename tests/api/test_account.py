"""The caller's account: profile, models, agents, usage, tokens and deletion."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.models import ApiToken, User
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig, Usage
from tests.api.program import Program
from tests.memory_store.rows import new_conversation

V1 = "/api/v1"


def post(client: Client, path: str, **fields: Any) -> Any:
    return client.post(f"{V1}/{path}", fields, content_type="application/json")


def patch(client: Client, path: str, **fields: Any) -> Any:
    return client.patch(f"{V1}/{path}", fields, content_type="application/json")


def test_users_can_change_their_name_and_time_zone(alice_client: Client) -> None:
    changed = patch(alice_client, "me", name=" Alice  A. ", time_zone="Asia/Tokyo").json()
    assert (changed["name"], changed["time_zone"]) == ("Alice A.", "Asia/Tokyo")
    assert alice_client.get(f"{V1}/me").json() == changed


@pytest.mark.parametrize(
    "fields",
    [{"time_zone": "Mars/Base"}, {"time_zone": "../etc/passwd"}, {"time_zone": ""}, {"name": None}],
    ids=str,
)
def test_invalid_names_and_time_zones_return_422(alice_client: Client, fields: dict[str, Any]) -> None:
    answer = patch(alice_client, "me", **fields)
    assert answer.status_code == 422


def test_users_cannot_make_themselves_operators(alice_client: Client, alice: User) -> None:
    patch(alice_client, "me", is_superuser=True, is_staff=True, email="root@example.com")
    alice.refresh_from_db()
    assert (alice.is_superuser, alice.is_staff, alice.email) == (False, False, "alice@example.com")


def test_enabled_models_are_listed_without_keys_and_addresses(
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


def test_the_default_agent_is_listed(alice_client: Client) -> None:
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


def test_users_see_their_own_usage_grouped_as_requested(alice_client: Client, alice: User, bob: User) -> None:
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


def test_usage_is_limited_to_the_requested_period(alice_client: Client, alice: User) -> None:
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
def test_invalid_periods_and_groupings_return_422(alice_client: Client, query: dict[str, str]) -> None:
    assert alice_client.get(f"{V1}/usage", query).status_code == 422


PASSWORD = "a long enough passphrase"


@pytest.fixture
def page(alice: User) -> Client:
    """Return a browser session of alice, who has just signed in."""
    return signed_in(alice)


def signed_in(user: User) -> Client:
    user.set_password(PASSWORD)
    user.save(update_fields=["password"])
    page = Client(enforce_csrf_checks=True)
    page.cookies["csrftoken"] = "a" * 32
    page.defaults["HTTP_X_CSRFTOKEN"] = "a" * 32
    assert page.post("/accounts/login/", {"login": user.email, "password": PASSWORD}).status_code == 302
    page.defaults["HTTP_X_CSRFTOKEN"] = page.cookies["csrftoken"].value  # sign-in rotates the token
    return page


def sign_in_long_ago(page: Client) -> None:
    """Backdate the sign-in by ten minutes."""
    session = page.session
    for record in session["account_authentication_methods"]:
        record["at"] -= 600
    session.save()


def test_a_new_token_is_shown_once_and_works_until_deleted(
    alice_client: Client, client: Client, page: Client
) -> None:
    made = post(page, "tokens", name="ci", scopes=["read"])
    assert made.status_code == 201, made.content
    secret = made.json()["token"]
    assert client.get(f"{V1}/me", headers={"Authorization": f"Bearer {secret}"}).json()["scopes"] == ["read"]
    listed = alice_client.get(f"{V1}/tokens")
    assert secret not in listed.content.decode()
    row = next(item for item in listed.json()["items"] if item["name"] == "ci")
    assert secret.startswith(row["prefix"])
    assert row["last_used_at"] is not None
    assert alice_client.delete(f"{V1}/tokens/{row['id']}").status_code == 204
    assert client.get(f"{V1}/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_stolen_token_cannot_create_tokens_or_delete_the_account(alice_client: Client, alice: User) -> None:
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    assert refusal(post(alice_client, "tokens", password=PASSWORD)) == (403, "session_needed")
    refused = alice_client.delete(f"{V1}/me", {"password": PASSWORD}, content_type="application/json")
    assert refusal(refused) == (403, "session_needed")
    assert ApiToken.objects.count() == User.objects.count() == 1


def test_a_stolen_session_needs_the_password_to_create_a_token(page: Client) -> None:
    sign_in_long_ago(page)
    assert refusal(post(page, "tokens")) == (403, "password_needed")
    assert refusal(post(page, "tokens", password="a guess")) == (403, "wrong_password")
    assert not ApiToken.objects.exists()
    assert post(page, "tokens", password=PASSWORD).json()["scopes"] == ["chat", "read", "memory"]
    assert post(page, "tokens").status_code == 201, "the password was entered just now"


def test_a_password_with_an_outdated_hash_confirms_and_keeps_the_session(
    page: Client, settings: Settings
) -> None:
    hashers = "django.contrib.auth.hashers"
    settings.PASSWORD_HASHERS = [f"{hashers}.ScryptPasswordHasher", f"{hashers}.Argon2PasswordHasher"]
    sign_in_long_ago(page)
    assert post(page, "tokens", password=PASSWORD).status_code == 201
    assert page.get(f"{V1}/me").status_code == 200


async def test_a_password_cannot_be_guessed_with_a_stolen_session(page: Client) -> None:
    await sync_to_async(sign_in_long_ago)(page)
    cookies = "; ".join(f"{name}={cookie.value}" for name, cookie in page.cookies.items())
    stolen = Program({"cookie": cookies, "x-csrftoken": page.cookies["csrftoken"].value})
    answers = [(await stolen.post("tokens", password=f"guess {number}")).status_code for number in range(11)]
    assert answers == [403] * 10 + [429]


def test_deleting_an_account_needs_the_password_even_right_after_sign_in(page: Client) -> None:
    deleted = page.delete(f"{V1}/me", {}, content_type="application/json")
    assert refusal(deleted) == (403, "password_needed")
    deleted = page.delete(f"{V1}/me", {"password": PASSWORD}, content_type="application/json")
    assert deleted.status_code == 204
    assert not User.objects.exists()


def test_an_expired_token_is_refused(page: Client, client: Client) -> None:
    expires_at = clock.now() + timedelta(hours=1)
    made = post(page, "tokens", expires_at=expires_at.isoformat()).json()
    assert made["expires_at"] == expires_at.isoformat().replace("+00:00", "Z")
    headers = {"Authorization": f"Bearer {made['token']}"}
    assert client.get(f"{V1}/me", headers=headers).status_code == 200
    ApiToken.objects.update(expires_at=clock.now())
    assert client.get(f"{V1}/me", headers=headers).status_code == 401


@pytest.mark.parametrize(
    "moment", ["2020-01-01T00:00:00Z", "9999-12-31T00:00:00Z", "2030-01-01T00:00:00", "soon", 1]
)
def test_the_expiry_of_a_token_must_be_within_the_next_ten_years(page: Client, moment: Any) -> None:
    answer = post(page, "tokens", expires_at=moment)
    assert answer.status_code == 422
    [detail] = answer.json()["error"]["details"]
    assert detail["field"] == "expires_at"
    assert "Value error" not in detail["message"]


def test_a_token_cannot_delete_a_token_with_more_scopes(
    api_client: Callable[..., Client], alice: User
) -> None:
    wide = api_client(alice, ["chat", "memory"])
    token = ApiToken.objects.get()
    narrow = api_client(alice, ["chat"])
    assert narrow.delete(f"{V1}/tokens/{token.pk}").status_code == 403
    assert wide.get(f"{V1}/me").status_code == 200


def test_only_operators_can_create_admin_tokens(page: Client) -> None:
    assert refusal(post(page, "tokens", scopes=["admin"])) == (403, "insufficient_scope")
