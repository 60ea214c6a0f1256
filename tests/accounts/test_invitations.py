"""Operators invite an address. The link lets that address sign up once, within a week."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from allauth.account.models import EmailAddress
from django.contrib.sessions.models import Session
from django.core import mail
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import delete_user
from chatapp.accounts.invitations.actions import VALID_FOR, delete_old_invitations
from chatapp.accounts.invitations.models import Invitation
from chatapp.accounts.invitations.services import invite
from chatapp.accounts.models import User
from chatapp.operations import clock
from chatapp.operations.models import AuditEvent

PASSWORD = "a long enough passphrase"
INVITATIONS = "/api/v1/admin/invitations"
SIGN_UP = "/accounts/signup/"


@pytest.fixture(autouse=True)
def _by_invitation(settings: Settings) -> None:
    settings.SIGNUP = "invite"


@pytest.fixture
def operator(api_client: Callable[..., Client], admin_user: User) -> Client:
    return api_client(admin_user)


@pytest.fixture
def link(admin_user: User) -> str:
    invited = invite(email="Erin@example.com", invited_by=admin_user, own_address="http://testserver")
    assert invited.link
    return invited.link


def sign_up(link: str, email: str = "erin@example.com") -> int:
    client = Client()
    client.get(link)
    form = {"email": email, "password1": PASSWORD, "password2": PASSWORD}
    return client.post(SIGN_UP, form).status_code


def test_the_link_signs_up_once_and_confirms_the_address(link: str) -> None:
    page = Client().get(link).content.decode()
    assert 'value="erin@example.com"' in page
    assert "readonly" in page
    assert sign_up(link) == 302
    erin = User.objects.get(email="erin@example.com")
    assert EmailAddress.objects.get(user=erin).verified
    assert not Invitation.objects.exists()
    erin.delete()
    page = Client().get(link).content.decode()
    assert "needs an invitation" in page
    assert sign_up(link) == 200
    assert not User.objects.filter(email="erin@example.com").exists()


def test_sign_up_fails_without_an_invitation_for_another_address_and_if_closed(
    link: str, settings: Settings
) -> None:
    sign_up(SIGN_UP)
    sign_up(f"{link}x")
    sign_up(link, "mallory@example.com")
    settings.SIGNUP = "closed"
    sign_up(link)
    assert not User.objects.filter(is_superuser=False).exists()


def test_an_invalid_link_leaves_no_session(link: str) -> None:
    Client().get(f"{SIGN_UP}?invitation=anything")
    assert not Session.objects.exists()
    visitor = Client()
    visitor.get(link)
    assert "needs an invitation" in visitor.get(f"{link}x").content.decode()


def test_an_unconfirmed_address_of_another_user_does_not_lock_out_its_owner(link: str, alice: User) -> None:
    EmailAddress.objects.create(user=alice, email="erin@example.com")
    assert sign_up(link) == 302
    assert User.objects.filter(email="erin@example.com").exists()
    assert not EmailAddress.objects.filter(user=alice).exists()


def test_an_address_that_a_user_confirmed_cannot_be_invited(operator: Client, alice: User) -> None:
    EmailAddress.objects.create(user=alice, email="erin@example.com", verified=True)
    answer = operator.post(INVITATIONS, {"email": "Erin@example.com"}, "application/json")
    assert (answer.status_code, answer.json()["error"]["details"]) == (409, {"field": "email"})


def test_only_one_of_two_visitors_of_a_link_can_sign_up(link: str) -> None:
    late = Client()
    late.get(link)
    Invitation.objects.all().delete()  # as if the other visitor had signed up
    form = {"email": "erin@example.com", "password1": PASSWORD, "password2": PASSWORD}
    assert "needs an invitation" in late.post(SIGN_UP, form).content.decode()
    assert not User.objects.filter(email="erin@example.com").exists()


def test_an_invitation_expires_and_is_deleted_later(link: str) -> None:
    Invitation.objects.update(expires_at=clock.now())
    sign_up(link)
    assert not User.objects.filter(email="erin@example.com").exists()
    delete_old_invitations(now=clock.now())
    assert Invitation.objects.exists()
    delete_old_invitations(now=clock.now() + VALID_FOR * 5)
    assert not Invitation.objects.exists()


def test_the_token_of_an_invitation_is_not_stored(link: str) -> None:
    token = urlsplit(link).query.partition("=")[2]
    client = Client()
    client.get(link)
    assert token not in str(list(Invitation.objects.values()))
    assert token not in str(dict(client.session.items()))


def test_operators_can_invite_list_and_withdraw_by_the_api(operator: Client, admin_user: User) -> None:
    made = operator.post(INVITATIONS, {"email": "Erin@Example.com"}, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["email"] == "erin@example.com"
    [listed] = operator.get(INVITATIONS).json()["items"]
    assert "link" not in listed
    again = operator.post(INVITATIONS, {"email": "erin@example.com"}, content_type="application/json")
    assert [each["id"] for each in operator.get(INVITATIONS).json()["items"]] == [again.json()["id"]]
    sign_up(made.json()["link"])  # invalid: the second invitation replaced this link
    assert not User.objects.filter(email="erin@example.com").exists()
    assert operator.delete(f"{INVITATIONS}/{again.json()['id']}").status_code == 204
    assert operator.delete(f"{INVITATIONS}/{again.json()['id']}").status_code == 404
    sign_up(again.json()["link"])
    assert not User.objects.filter(email="erin@example.com").exists()
    told = AuditEvent.objects.filter(kind__startswith="invit").order_by("id")
    assert [(event.kind, event.actor_id) for event in told] == [
        ("invited", admin_user.pk),
        ("invited", admin_user.pk),
        ("invitation_withdrawn", admin_user.pk),
    ]
    assert "erin" not in str([event.detail for event in told])


@pytest.mark.parametrize("email", ["nobody", "a\x00@b.c", "alice@example.com", f"{'a' * 250}@b.cd"])
def test_an_invalid_or_taken_address_is_refused(operator: Client, alice: User, email: str) -> None:
    answer = operator.post(INVITATIONS, {"email": email}, content_type="application/json")
    assert answer.status_code == (409 if email == alice.email else 422)
    assert not Invitation.objects.exists()


def test_nobody_can_be_invited_if_sign_up_is_closed(operator: Client, settings: Settings) -> None:
    settings.SIGNUP = "closed"
    answer = operator.post(INVITATIONS, {"email": "erin@example.com"}, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "signup_closed")


def test_the_list_of_invitations_is_paginated(operator: Client, admin_user: User) -> None:
    for number in range(5):
        invite(email=f"guest{number}@example.com", invited_by=admin_user, own_address="http://testserver")
    first = operator.get(INVITATIONS, {"limit": 3}).json()
    rest = operator.get(INVITATIONS, {"limit": 3, "cursor": first["next_cursor"]}).json()
    emails = [each["email"] for each in first["items"] + rest["items"]]
    assert emails == [f"guest{number}@example.com" for number in (4, 3, 2, 1, 0)]
    assert rest["next_cursor"] is None


def test_deleting_an_account_deletes_the_invitation_of_its_address(alice: User, admin_user: User) -> None:
    Invitation.objects.create(
        email=alice.email, token_hash="x", created_at=clock.now(), expires_at=clock.now() + timedelta(days=1)
    )
    delete_user(user=alice)
    assert not Invitation.objects.exists()


# --- mail and the admin


@pytest.fixture
def _mailing(settings: Settings) -> None:
    settings.HAS_MAIL = True
    settings.PUBLIC_URL = "https://chat.example.com"
    settings.DEFAULT_FROM_EMAIL = "chat@example.com"


@pytest.mark.usefixtures("_mailing")
def test_the_link_is_only_mailed_if_mail_works(operator: Client) -> None:
    made = operator.post(INVITATIONS, {"email": "erin@example.com"}, content_type="application/json")
    assert made.json()["link"] is None
    [sent] = mail.outbox
    assert sent.to == ["erin@example.com"]
    [link] = re.findall(r"https://chat\.example\.com(/accounts/signup/\?invitation=\S+)", str(sent.body))
    assert sign_up(link) == 302


@pytest.mark.usefixtures("_mailing")
def test_the_mail_is_in_the_language_of_the_inviter(operator: Client) -> None:
    User.objects.filter(is_superuser=True).update(language="zh-hans")
    operator.post(INVITATIONS, {"email": "erin@example.com"}, content_type="application/json")
    [sent] = mail.outbox
    assert sent.subject == "邀请你使用 Palimpsest"
    assert re.search(r"使用一次，有效期至 UTC 时间 \d{4}年\d+月\d+日 \d\d:\d\d。", str(sent.body))


@pytest.mark.usefixtures("_mailing")
def test_the_link_is_returned_and_not_logged_if_the_mail_cannot_be_sent(
    operator: Client, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    made = operator.post(INVITATIONS, {"email": "erin@example.com"}, content_type="application/json")
    assert sign_up(made.json()["link"]) == 302
    assert "An invitation was not sent" in caplog.text
    assert "invitation=" not in caplog.text


def test_an_operator_invites_and_withdraws_in_the_admin(admin_client: Client, settings: Settings) -> None:
    add = "/admin/chatapp/invitation/add/"
    shown = admin_client.post(add, {"email": "erin@example.com"}).content.decode()
    [link] = re.findall(r"<code>http://testserver(\S+)</code>", shown)
    assert "erin@example.com" in admin_client.get("/admin/chatapp/invitation/").content.decode()
    row = Invitation.objects.get()
    admin_client.post(f"/admin/chatapp/invitation/{row.pk}/delete/", {"post": "yes"})
    sign_up(link)
    assert not User.objects.filter(email="erin@example.com").exists()
    assert AuditEvent.objects.filter(kind="invitation_withdrawn").exists()
    taken = admin_client.post(add, {"email": User.objects.get().email}).content.decode()
    assert "There is an account with this email address already." in taken
    settings.SIGNUP = "closed"
    assert "SIGNUP is “closed”" in admin_client.get(add).content.decode()
