"""Signing in, signing out and signing up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core.cache import cache
from django.db.models.signals import pre_save
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import create_user
from chatapp.accounts.models import User
from chatapp.operations.errors import Conflict, InvalidInput
from chatapp.operations.models import AuditEvent

PASSWORD = "a long enough passphrase"


@pytest.fixture(autouse=True)
def _fresh_rate_limits() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def dora(db: None) -> User:
    return create_user(email="Dora@Example.com", password=PASSWORD, name="Dora")


def sign_in(client: Client, email: str, password: str = PASSWORD) -> int:
    return client.post("/accounts/login/", {"login": email, "password": password}).status_code


def test_a_user_can_sign_in_with_the_address_in_any_case(dora: User, client: Client) -> None:
    assert sign_in(client, "DORA@example.com") == 302
    assert client.get("/").status_code == 200


def test_a_wrong_password_does_not_sign_in(dora: User, client: Client) -> None:
    assert sign_in(client, "dora@example.com", "wrong") == 200
    assert client.get("/").status_code == 302


def test_guessing_passwords_is_rate_limited(dora: User, client: Client) -> None:
    for _ in range(12):
        sign_in(client, "dora@example.com", "wrong")
    assert sign_in(client, "dora@example.com") != 302


def test_passwords_are_stored_with_argon2(dora: User) -> None:
    assert dora.password.startswith("argon2")


@pytest.mark.parametrize("address", ["/", "/memory", "/c/01930000-0000-7000-8000-000000000000"])
def test_pages_redirect_strangers_to_the_sign_in_page(db: None, client: Client, address: str) -> None:
    response = client.get(address)
    assert (response.status_code, response["Location"]) == (302, f"/accounts/login/?next={address}")


def test_signing_out_ends_the_session(dora: User, client: Client) -> None:
    sign_in(client, "dora@example.com")
    assert client.post("/accounts/logout/").status_code == 302
    assert client.get("/").status_code == 302


def test_a_deactivated_user_is_signed_out_and_cannot_sign_in_again(dora: User, client: Client) -> None:
    sign_in(client, "dora@example.com")
    dora.is_active = False
    dora.save(update_fields=["is_active"])
    assert client.get("/").status_code == 302
    sign_in(client, "dora@example.com")
    assert client.get("/").status_code == 302


def test_a_changed_password_ends_other_sessions(dora: User, client: Client) -> None:
    other = Client()
    sign_in(client, "dora@example.com")
    sign_in(other, "dora@example.com")
    form = {
        "oldpassword": PASSWORD,
        "password1": "another long passphrase",
        "password2": "another long passphrase",
    }
    assert client.post("/accounts/password/change/", form).status_code == 302
    assert client.get("/").status_code == 200
    assert other.get("/").status_code == 302
    assert AuditEvent.objects.filter(kind="password_changed", user_id=dora.pk).exists()


def test_ending_other_sessions_signs_them_out_and_is_audited(dora: User, client: Client) -> None:
    other = Client()
    sign_in(client, "dora@example.com")
    sign_in(other, "dora@example.com")
    assert client.post("/accounts/sessions/").status_code == 302
    assert client.get("/").status_code == 200
    assert other.get("/").status_code == 302
    assert AuditEvent.objects.filter(kind="session_ended", user_id=dora.pk).count() == 1


@pytest.mark.parametrize("address", ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/"])
def test_the_public_account_pages_render(db: None, client: Client, address: str, settings: Settings) -> None:
    settings.HAS_MAIL = True
    assert client.get(address).status_code == 200


@pytest.mark.parametrize("address", ["/accounts/logout/", "/accounts/password/change/", "/accounts/email/"])
def test_the_account_pages_render(dora: User, browser_client: Callable[[User], Client], address: str) -> None:
    assert browser_client(dora).get(address).status_code == 200


def test_a_taken_address_is_refused_whatever_its_case(dora: User) -> None:
    with pytest.raises(Conflict):
        create_user(email="DORA@EXAMPLE.COM", password=PASSWORD)


@pytest.mark.parametrize(
    ("email", "password"),
    [("nobody", PASSWORD), ("a@example.com", "short"), ("a\x00@b.c", PASSWORD), ("", PASSWORD)],
)
def test_invalid_addresses_and_passwords_are_refused(db: None, email: str, password: str) -> None:
    with pytest.raises(InvalidInput):
        create_user(email=email, password=password)
    assert not User.objects.exists()


# --- who may sign up ------------------------------------------------------------------------------------


def sign_up(client: Client, email: str) -> bool:
    client.post("/accounts/signup/", {"email": email, "password1": PASSWORD, "password2": PASSWORD})
    return User.objects.filter(email=email).exists()


def test_nobody_can_sign_up_if_sign_up_is_closed(db: None, client: Client) -> None:
    assert not sign_up(client, "erin@example.com")


def test_everybody_can_sign_up_if_sign_up_is_open(db: None, client: Client, settings: Settings) -> None:
    settings.SIGNUP = "open"
    assert sign_up(client, "erin@example.com")
    assert not User.objects.get().is_staff


def test_an_address_that_another_user_has_not_confirmed_can_sign_up(
    dora: User, client: Client, settings: Settings
) -> None:
    settings.SIGNUP = "open"
    entered = EmailAddress.objects.create(user=dora, email="erin@example.com")
    form = {"email": "erin@example.com", "password1": "short", "password2": "short"}
    assert client.post("/accounts/signup/", form).status_code == 200
    assert EmailAddress.objects.filter(pk=entered.pk).exists(), "nobody has an account with it yet"
    assert sign_up(client, "erin@example.com")
    assert not EmailAddress.objects.filter(pk=entered.pk).exists()


def test_a_confirmed_address_cannot_sign_up_again(dora: User, client: Client, settings: Settings) -> None:
    settings.SIGNUP = "open"
    EmailAddress.objects.create(user=dora, email="erin@example.com", verified=True)
    assert not sign_up(client, "erin@example.com")


def test_the_second_of_two_concurrent_sign_ups_with_one_address_gets_an_error(
    db: None, client: Client, settings: Settings
) -> None:
    settings.SIGNUP = "open"

    def be_first(**_: Any) -> None:
        """Sign up after the other form was validated and before it is saved."""
        pre_save.disconnect(be_first, sender=User)
        create_user(email="erin@example.com", password=PASSWORD)

    pre_save.connect(be_first, sender=User)
    form = {"email": "erin@example.com", "password1": PASSWORD, "password2": PASSWORD}
    answer = client.post("/accounts/signup/", form)
    assert answer.status_code == 409
    assert "There is an account with this email address already." in answer.content.decode()
    assert client.get("/").status_code == 302


def test_a_confirmed_address_cannot_be_given_to_another_account(dora: User, admin_client: Client) -> None:
    EmailAddress.objects.create(user=dora, email="erin@example.com", verified=True)
    with pytest.raises(Conflict):
        create_user(email="Erin@example.com", password=PASSWORD)
    finn = create_user(email="finn@example.com", password=PASSWORD)
    new = {"email": "Erin@example.com", "password1": PASSWORD, "password2": PASSWORD}
    for path, fields in (
        ("add", new),
        (f"{finn.pk}/change", {"email": "erin@example.com", "time_zone": "UTC"}),
    ):
        answer = admin_client.post(f"/admin/chatapp/user/{path}/", fields)
        assert "There is an account with this email address already." in answer.content.decode()
    assert not User.objects.filter(email="erin@example.com").exists()
    own = {"email": "erin@example.com", "time_zone": "UTC", "is_active": "on"}
    assert admin_client.post(f"/admin/chatapp/user/{dora.pk}/change/", own).status_code == 302


def test_a_new_account_removes_its_address_from_a_user_who_has_not_confirmed_it(
    dora: User, client: Client
) -> None:
    sign_in(client, "dora@example.com")
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    EmailAddress.objects.create(user=dora, email="erin@example.com")
    create_user(email="Erin@example.com", password=PASSWORD)
    entered = {"email": "erin@example.com", "action_primary": ""}
    assert client.post("/accounts/email/", entered).status_code == 302
    assert User.objects.get(pk=dora.pk).email == "dora@example.com"
