"""Changes of accounts and rights are audited once, in the transaction that makes them, for operators to read."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.db import transaction
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.actions import create_token, create_user, delete_token
from chatapp.accounts.invitations.actions import create_invitation
from chatapp.accounts.models import User
from chatapp.forgetting.accounts import delete_account
from chatapp.operations import clock
from chatapp.operations.database import audit
from chatapp.operations.models import AuditEvent
from chatapp.providers.models import ModelConfig

LOG = "/admin/chatapp/auditevent/"


def kinds() -> list[str]:
    return list(AuditEvent.objects.order_by("id").values_list("kind", flat=True))


def test_tokens_are_audited_without_secret_and_name(alice: User) -> None:
    token, secret = create_token(user=alice, name="mine", scopes=["read"])
    delete_token(user=alice, token_id=token.pk)
    assert kinds() == ["token_created", "token_revoked"]
    stored = str(list(AuditEvent.objects.values()))
    assert secret not in stored
    assert "mine" not in stored


def test_rolled_back_actions_are_not_audited(alice: User) -> None:
    with transaction.atomic():
        create_token(user=alice, name="mine", scopes=["read"])
        transaction.set_rollback(True)
    assert kinds() == []


def test_audit_events_cannot_be_changed_or_deleted(alice: User) -> None:
    audit.record(AuditEvent.Kind.EXPORTED, user_id=alice.pk)
    row = AuditEvent.objects.get()
    row.kind = AuditEvent.Kind.SIGNED_IN
    for attempt in (row.save, row.delete, AuditEvent.objects.all().delete, AuditEvent.objects.update):
        with pytest.raises(TypeError):
            attempt()
    assert kinds() == ["exported"]


def test_a_deleted_account_leaves_only_its_id(alice: User) -> None:
    user_id = alice.pk
    delete_account(alice, now=clock.now())
    assert ("account_deleted", user_id) in AuditEvent.objects.values_list("kind", "user_id")
    assert "alice" not in str(list(AuditEvent.objects.values()))


def test_logs_of_operator_actions_do_not_name_a_deleted_account(
    admin_client: Client, admin_user: User, settings: Settings
) -> None:
    settings.SIGNUP = "invite"
    invitation, _ = create_invitation(email="erin@example.com", invited_by=admin_user, now=clock.now())
    admin_client.post(f"/admin/chatapp/invitation/{invitation.pk}/delete/", {"post": "yes"})
    erin = create_user(email="erin@example.com", password="a long enough passphrase")
    of_erin = {"user": str(erin.pk), "email": "also-erin@example.com"}
    admin_client.post("/admin/account/emailaddress/add/", of_erin)
    budget = {"scope": "user", "user": str(erin.pk), "period": "day", "tokens": "5"}
    for language in ("en", "zh-hans"):
        admin_client.post("/admin/chatapp/budget/add/", budget, headers={"Accept-Language": language})
        budget["period"] = "month"
    assert LogEntry.objects.count() == 4
    delete_account(erin, now=clock.now())
    assert "erin" not in str(list(AuditEvent.objects.values()))
    assert "erin" not in str(list(LogEntry.objects.values()))


def test_old_audit_events_are_deleted(alice: User) -> None:
    audit.record(AuditEvent.Kind.EXPORTED, user_id=alice.pk)
    assert audit.delete_old_events(now=clock.now()) == 0
    assert audit.delete_old_events(now=clock.now() + audit.RETENTION + timedelta(days=1)) == 1


def test_changes_by_operators_are_audited(admin_client: Client, admin_user: User, alice: User) -> None:
    model = ModelConfig.objects.create(name="Old", model_id="old")
    page = admin_client.get(f"/admin/chatapp/user/{alice.pk}/change/")
    form = {name: value for name, value in page.context["adminform"].form.initial.items() if value}
    form = {"email": alice.email, "time_zone": "UTC", "is_active": "on", "is_staff": "on"} | {
        name: form[name] for name in ("name",) if name in form
    }
    assert admin_client.post(f"/admin/chatapp/user/{alice.pk}/change/", form).status_code == 302
    assert (
        admin_client.post(f"/admin/chatapp/modelconfig/{model.pk}/delete/", {"post": "yes"}).status_code
        == 302
    )
    rights, deletion = AuditEvent.objects.filter(kind="changed_in_admin").order_by("id")
    assert (rights.user_id, rights.actor_id) == (alice.pk, admin_user.pk)
    assert "Operator" in rights.detail["fields"]
    assert alice.email not in str(rights.detail)
    assert (deletion.detail["done"], deletion.detail["name"]) == ("deleted", "Old")


def test_operators_can_filter_search_and_export_the_log(admin_client: Client, alice: User, bob: User) -> None:
    audit.record(AuditEvent.Kind.EXPORTED, user_id=alice.pk)
    audit.record(AuditEvent.Kind.TOKEN_CREATED, user_id=bob.pk, token="pal_abc", scopes=["read"])
    shown = admin_client.get(LOG, {"kind": "token_created"}).content.decode()
    assert bob.email in shown
    assert "pal_abc" in shown
    assert alice.email not in shown
    found = admin_client.get(LOG, {"q": "alice@"}).content.decode()
    assert alice.email in found
    assert bob.email not in found
    chosen = {"action": "export", "_selected_action": [str(row.pk) for row in AuditEvent.objects.all()]}
    rows = list(csv.reader(io.StringIO(admin_client.post(LOG, chosen).content.decode())))
    assert {row[2] for row in rows[1:]} >= {alice.email, bob.email}


def test_the_export_escapes_addresses_that_are_formulas(admin_client: Client) -> None:
    create_user(email="=cmd|'/C'!A1@example.com", password="a long enough passphrase")
    chosen = {"action": "export", "_selected_action": [str(row.pk) for row in AuditEvent.objects.all()]}
    rows = csv.reader(io.StringIO(admin_client.post(LOG, chosen).content.decode()))
    assert "'=cmd|'/c'!a1@example.com" in {row[2] for row in rows}


def test_other_users_cannot_read_the_log(client: Client, alice: User) -> None:
    client.force_login(alice)
    assert client.get(LOG).status_code == 404
