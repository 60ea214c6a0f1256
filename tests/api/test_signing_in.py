"""Authentication: tokens with their scopes, and sessions with their CSRF token."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from chatapp.accounts.models import ApiToken, User

ME = "/api/v1/me"
CONVERSATIONS = "/api/v1/conversations"


def post(client: Client, path: str = CONVERSATIONS, body: object = None, **more: object) -> object:
    return client.post(path, body or {}, content_type="application/json", **more)


def test_a_token_authenticates_its_owner(alice_client: Client, alice: User) -> None:
    answer = alice_client.get(ME)
    assert answer.status_code == 200
    assert answer.json()["email"] == alice.email


def test_an_anonymous_request_returns_401_and_names_the_scheme(client: Client) -> None:
    answer = client.get(ME)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthorized"
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("value", ["Bearer nonsense", "Bearer", "Bearer \u00e9"])
def test_an_invalid_token_is_refused_even_with_a_session(alice: User, value: str) -> None:
    client = Client()
    client.force_login(alice)
    answer = client.get(ME, headers={"Authorization": value})
    assert answer.status_code == 401


def test_a_token_of_a_deactivated_user_is_refused(alice_client: Client, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert alice_client.get(ME).status_code == 401


def test_a_session_of_a_deactivated_user_is_refused(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert client.get(ME).status_code == 401


def test_a_deleted_token_is_refused(alice_client: Client) -> None:
    ApiToken.objects.all().delete()
    assert alice_client.get(ME).status_code == 401


def test_a_read_token_cannot_write(api_client: Callable[..., Client], alice: User) -> None:
    client = api_client(alice, ["read"])
    assert client.get(CONVERSATIONS).status_code == 200
    refused = post(client)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "insufficient_scope"


def test_a_memory_token_cannot_read_conversations(api_client: Callable[..., Client], alice: User) -> None:
    client = api_client(alice, ["memory"])
    assert client.get(CONVERSATIONS).status_code == 403
    assert client.get("/api/v1/memory/days").status_code == 200


def test_a_session_can_read(browser_client: Callable[[User], Client], alice: User) -> None:
    assert browser_client(alice).get(ME).json()["email"] == alice.email


def test_a_session_can_write_only_with_its_csrf_token(
    browser_client: Callable[[User], Client], alice: User
) -> None:
    client = browser_client(alice)
    refused = post(client)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "csrf_failed"
    client.cookies["csrftoken"] = "a" * 32
    assert post(client, headers={"X-CSRFToken": "a" * 32}).status_code == 201


def test_a_token_needs_no_csrf_token(alice: User, api_client: Callable[..., Client]) -> None:
    client = api_client(alice)
    client.handler.enforce_csrf_checks = True
    assert post(client).status_code == 201
