"""Second factors: their encryption, the error if they cannot be decrypted, and their removal by an operator."""

from __future__ import annotations

import time
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core import mail
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from chatapp.accounts.models import User
from chatapp.operations.encryption import decrypt, encrypt
from chatapp.operations.models import AuditEvent
from tests.servers.people import PASSWORD

SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
USERS = "/admin/chatapp/user/"


@pytest.fixture
def guarded(alice: User) -> User:
    """Return alice with a password, an authenticator app and recovery codes."""
    alice.set_password(PASSWORD)
    alice.save()
    TOTP.activate(alice, SECRET)
    RecoveryCodes.activate(alice)
    return alice


def code_now() -> str:
    """Return the current code of the app, which is accepted for half a minute after it changes."""
    return format_hotp_value(hotp_value(SECRET, int(time.time()) // 30))


def enter(user: User, code: str) -> Any:
    """Sign in with the password and a code. Return the response to the code."""
    browser = Client()
    asked = browser.post(reverse("account_login"), {"login": user.email, "password": PASSWORD})
    assert asked.headers["location"] == reverse("mfa_authenticate")
    return browser.post(reverse("mfa_authenticate"), {"code": code})


def test_secrets_of_second_factors_are_stored_encrypted(guarded: User) -> None:
    stored = {row.type: row.data for row in Authenticator.objects.all()}
    assert SECRET not in str(stored)
    assert decrypt(stored["totp"]["secret"]) == SECRET
    assert len(decrypt(stored["recovery_codes"]["seed"])) == 80
    assert enter(guarded, code_now()).headers["location"] == reverse("chat")


def test_the_migration_encrypts_existing_second_factors_and_is_reversible(alice: User) -> None:
    migration = import_module("chatapp.migrations.0039_encrypt_second_factors")
    former = {
        "totp": {"secret": SECRET},
        "recovery_codes": {"migrated_codes": ["one", "two"], "used_mask": 0},
    }
    for kind, data in former.items():
        Authenticator.objects.create(user=alice, type=kind, data=data)
    migration.change_all(apps, encrypt)
    assert SECRET not in str(list(Authenticator.objects.values_list("data")))
    assert TOTP(Authenticator.objects.get(type="totp")).validate_code(code_now())
    migration.change_all(apps, decrypt)
    assert dict(Authenticator.objects.values_list("type", "data")) == former


def test_nobody_can_sign_in_after_the_secret_key_changed_and_the_error_says_why(
    guarded: User, settings: Any
) -> None:
    settings.SECRET_KEY = "another"
    answer = enter(guarded, code_now())
    assert answer.status_code == 503
    assert b"It was stored with another SECRET_KEY." in answer.content


def test_a_command_removes_second_factors_and_ends_sessions(guarded: User) -> None:
    browser = Client()
    browser.force_login(guarded)
    browser.get("/")
    UserSession.objects.create(user=guarded, session_key=browser.session.session_key, ip="127.0.0.1")
    said = StringIO()
    call_command("remove_second_factors", guarded.email, stdout=said)
    call_command("remove_second_factors", guarded.email, stdout=said)
    assert said.getvalue() == "Removed 2 of alice@example.com.\nalice@example.com has none.\n"
    assert not Authenticator.objects.exists()
    assert browser.get("/api/v1/me").status_code == 401
    changes = AuditEvent.objects.filter(kind="second_factor_changed", user_id=guarded.pk)
    assert [event.detail for event in changes] == [{"done": "removed by an operator"}]
    with pytest.raises(CommandError, match="There is no user nobody"):
        call_command("remove_second_factors", "nobody@example.com")


@pytest.mark.parametrize(
    ("language", "subject"), [("en", "Your second factors were removed"), ("zh-hans", "你的两步验证已被移除")]
)
def test_the_user_is_mailed_once_in_their_language_about_the_removal(
    guarded: User, settings: Any, language: str, subject: str
) -> None:
    settings.HAS_MAIL = True
    User.objects.filter(pk=guarded.pk).update(language=language)
    for _ in range(2):
        call_command("remove_second_factors", guarded.email, stdout=StringIO())
    [sent] = mail.outbox
    assert (sent.to, sent.subject) == ([guarded.email], subject)
    assert guarded.email in str(sent.body)


def test_second_factors_are_removed_even_if_the_mail_cannot_be_sent(
    guarded: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.HAS_MAIL = True
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    call_command("remove_second_factors", guarded.email, stdout=StringIO())
    assert not Authenticator.objects.exists()
    assert "The mail about removed second factors was not sent" in caplog.text


@pytest.mark.parametrize("is_admin", [True, False])
def test_only_admins_can_remove_second_factors_in_the_panel(guarded: User, bob: User, is_admin: bool) -> None:
    bob.is_staff, bob.is_superuser = True, is_admin
    bob.save()
    bob.user_permissions.set(Permission.objects.filter(codename__in=["view_user", "change_user"]))
    panel = Client()
    panel.force_login(bob)
    assert ("remove_second_factors" in panel.get(USERS).content.decode()) == is_admin
    form = {"action": "remove_second_factors", "_selected_action": str(guarded.pk)}
    panel.post(USERS, form)
    assert Authenticator.objects.exists() != is_admin
    removed = AuditEvent.objects.filter(kind="second_factor_changed", actor_id=bob.pk)
    assert removed.exists() == is_admin
