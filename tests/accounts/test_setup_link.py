"""The setup link makes its first visitor the admin, and works only once."""

from __future__ import annotations

import threading

import pytest
from allauth.usersessions.models import UserSession
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import claim_setup_link, create_user, ensure_setup_link
from chatapp.accounts.models import SetupLink, User
from chatapp.operations.configuration.changeable_settings import current
from chatapp.operations.errors import ServiceError
from chatapp.operations.models import StoredSetting

PASSWORD = "a long enough passphrase"
FORM = {"email": "Root@Example.com", "name": "Root", "password": PASSWORD}


@pytest.fixture
def token(db: None) -> str:
    made = ensure_setup_link()
    assert made
    return made


def test_the_first_visitor_becomes_the_admin_and_is_signed_in(token: str, client: Client) -> None:
    assert client.get(f"/setup/{token}").status_code == 200
    response = client.post(f"/setup/{token}", FORM)
    assert (response.status_code, response["Location"]) == (302, "/")
    admin = User.objects.get()
    assert (admin.email, admin.name, admin.is_superuser, admin.is_staff) == (
        "root@example.com",
        "Root",
        True,
        True,
    )
    assert client.get("/admin/").status_code == 200
    assert UserSession.objects.get().user == admin


def test_the_first_admin_chooses_the_retention_period(token: str, client: Client) -> None:
    assert "How long are chats kept?" in client.get(f"/setup/{token}").content.decode()
    client.post(f"/setup/{token}", {**FORM, "retention_days": "365"})
    assert current("RETENTION_DAYS") == 365
    assert 'name="retention-days" content="365"' in client.get("/").content.decode()


def test_the_setup_does_not_ask_for_a_retention_period_that_the_environment_sets(
    token: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETENTION_DAYS", "30")
    assert "How long are chats kept?" not in client.get(f"/setup/{token}").content.decode()
    assert client.post(f"/setup/{token}", {**FORM, "retention_days": "365"}).status_code == 302
    assert not StoredSetting.objects.exists()


def test_a_second_visit_is_refused(token: str, client: Client) -> None:
    client.post(f"/setup/{token}", FORM)
    stranger = Client()
    response = stranger.get(f"/setup/{token}")
    assert response.status_code == 404
    assert "no longer valid" in response.content.decode()
    assert stranger.post(f"/setup/{token}", {**FORM, "email": "eve@example.com"}).status_code == 404
    assert User.objects.count() == 1


def test_a_guessed_link_is_refused(token: str, client: Client) -> None:
    assert client.get("/setup/guessed").status_code == 404
    assert client.post("/setup/guessed", FORM).status_code == 404
    assert not User.objects.exists()


def test_a_weak_password_is_reported_and_the_link_stays_valid(token: str, client: Client) -> None:
    response = client.post(f"/setup/{token}", {**FORM, "password": "password"})
    assert response.status_code == 400
    assert "Use at least 10 characters" in response.content.decode()
    assert client.post(f"/setup/{token}", FORM).status_code == 302


def test_a_password_like_the_address_is_refused(token: str, client: Client) -> None:
    response = client.post(
        f"/setup/{token}", {"email": "grandmother@example.com", "password": "grandmother1"}
    )
    assert response.status_code == 400
    assert not User.objects.exists()


def test_the_database_does_not_hold_the_link(token: str) -> None:
    assert token not in SetupLink.objects.get().token_hash


def test_processes_that_start_together_print_one_link(token: str, client: Client) -> None:
    assert ensure_setup_link() == token
    assert client.get(f"/setup/{token}").status_code == 200


def test_a_used_link_is_never_valid_again(token: str, client: Client) -> None:
    client.post(f"/setup/{token}", FORM)
    User.objects.update(is_superuser=False)
    newer = ensure_setup_link()
    assert client.get(f"/setup/{token}").status_code == 404
    assert client.get(f"/setup/{newer}").status_code == 200


def test_the_link_depends_on_the_secret_key(token: str, settings: Settings) -> None:
    settings.SECRET_KEY = "of another deployment, and long enough"
    assert ensure_setup_link() != token


def test_there_is_no_link_once_there_is_an_admin(token: str, client: Client) -> None:
    create_user(email="root@example.com", password=PASSWORD, is_admin=True)
    assert ensure_setup_link() is None
    assert client.get(f"/setup/{token}").status_code == 404


def test_an_ordinary_user_does_not_end_the_setup(token: str, client: Client) -> None:
    create_user(email="alice@example.com", password=PASSWORD)
    assert client.post(f"/setup/{token}", FORM).status_code == 302


def test_an_admin_without_access_to_the_panel_does_not_end_the_setup(token: str, client: Client) -> None:
    User.objects.create_user("shut-out@example.com", is_superuser=True)
    assert client.post(f"/setup/{token}", FORM).status_code == 302
    assert ensure_setup_link() is None


def test_a_taken_address_is_reported_and_the_link_stays_valid(token: str, client: Client) -> None:
    create_user(email="root@example.com", password=PASSWORD)
    response = client.post(f"/setup/{token}", FORM)
    assert response.status_code == 400
    assert "already" in response.content.decode()
    assert client.post(f"/setup/{token}", {**FORM, "email": "other@example.com"}).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_only_one_of_several_concurrent_visitors_becomes_the_admin() -> None:
    token = ensure_setup_link()
    assert token
    start = threading.Barrier(4)
    outcomes: list[str] = []

    def visit(number: int) -> None:
        start.wait()
        try:
            claim_setup_link(token=token, email=f"visitor{number}@example.com", password=PASSWORD)
            outcomes.append("admin")
        except ServiceError as error:
            outcomes.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["admin", "not_found", "not_found", "not_found"]
    assert User.objects.filter(is_superuser=True).count() == 1
