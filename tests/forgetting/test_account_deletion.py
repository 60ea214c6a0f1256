"""Deleting an account deletes all its data, and no data of other users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.db import transaction
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.files import attachments
from chatapp.forgetting import accounts
from chatapp.forgetting.accounts import delete_account
from chatapp.forgetting.models import Tombstone
from chatapp.forgetting.services import forget_all
from chatapp.long_term.files import user_folder
from chatapp.long_term.models import MemoryEntry
from chatapp.operations import clock
from chatapp.operations.models import AuditEvent
from tests.forgetting.everywhere import files_with, tables_with
from tests.forgetting.lives import SECRET, live

pytestmark = pytest.mark.django_db(transaction=True)

Clients = Callable[..., Client]
ME = "/api/v1/me"


PASSWORD = "right one"


def signed_in(user: User) -> Client:
    user.set_password(PASSWORD)
    user.save()
    client = Client()
    client.force_login(user)
    return client


def delete_at_the_page(user: User) -> Any:
    return signed_in(user).delete(ME, {"password": PASSWORD}, content_type="application/json")


@pytest.mark.usefixtures("no_files")
def test_a_deleted_account_leaves_only_its_id_in_the_audit_log(alice: User, api_client: Clients) -> None:
    """The id in the audit log identifies nobody any more."""
    life = live(alice)
    client = api_client(alice)
    assert delete_at_the_page(alice).status_code == 204
    assert tables_with(SECRET) == []
    assert tables_with("alice@example.com") == []
    found = {*tables_with(str(alice.pk)), *tables_with(alice.pk.hex)}
    assert found == {AuditEvent._meta.db_table}
    assert files_with(SECRET) == []
    assert not user_folder(alice.pk).exists()
    assert not attachments.content_path(life.image.sha256).exists()
    assert client.get(ME).status_code == 401


def test_tombstones_are_deleted_before_the_account(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tombstones are deleted in pieces, because the account's own transaction holds the write lock until it ends."""
    live(alice)
    forget_all(alice, now=clock.now())
    assert Tombstone.objects.filter(user=alice).exists()
    left = []
    monkeypatch.setattr(
        accounts, "delete_user", lambda user: left.append(Tombstone.objects.filter(user=user).count())
    )
    delete_account(alice, now=clock.now())
    assert left == [0]


def test_other_users_keep_their_data(alice: User, bob: User, api_client: Clients) -> None:
    live(alice, shade=3)
    theirs = live(bob, shade=3)
    assert delete_at_the_page(alice).status_code == 204
    assert Message.objects.filter(user=bob).count() == 8
    assert MemoryEntry.objects.filter(user=bob).count() == 1
    assert attachments.content_path(theirs.image.sha256).exists(), "the same picture"
    assert api_client(bob).get(ME).status_code == 200


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("sent", "status"), [({}, 403), ({"password": "wrong"}, 403), ({"password": "right one"}, 204)]
)
def test_deleting_the_account_requires_the_password_again(
    alice: User, sent: dict[str, Any], status: int
) -> None:
    client = signed_in(alice)
    answer = client.delete(ME, sent, content_type="application/json")
    assert answer.status_code == status
    assert User.objects.filter(pk=alice.pk).exists() == (status != 204)
    if status == 204:
        assert not Session.objects.exists()
        assert client.get(ME).status_code == 401


@pytest.mark.sqlite
@pytest.mark.parametrize("scopes", [["chat"], ["memory"], ["read"], ["chat", "read", "memory", "admin"]])
def test_an_api_token_cannot_delete_the_account(alice: User, api_client: Clients, scopes: list[str]) -> None:
    assert api_client(alice, scopes).delete(ME).status_code == 403
    assert User.objects.filter(pk=alice.pk).exists()


@pytest.mark.sqlite
def test_the_only_admin_cannot_be_deleted(admin_user: User) -> None:
    answer = delete_at_the_page(admin_user)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "only_admin")
    User.objects.create_superuser("second@example.com")
    assert delete_at_the_page(admin_user).status_code == 204


def test_an_admin_can_delete_an_account_with_all_its_data(alice: User, admin_client: Client) -> None:
    live(alice)
    page = f"/admin/chatapp/user/{alice.pk}/delete/"
    asked = admin_client.get(page)
    assert asked.status_code == 200
    assert SECRET not in asked.content.decode()
    assert admin_client.post(page, {"post": "yes"}).status_code == 302
    assert not Conversation.objects.exists()
    assert tables_with(SECRET) == []
    assert not user_folder(alice.pk).exists()


@pytest.mark.usefixtures("no_files")
def test_an_account_deletion_that_is_rolled_back_touches_no_file(alice: User) -> None:
    """A view of the admin panel is one transaction, which may fail after the deletion."""
    life = live(alice)
    before = files_with(SECRET)
    with transaction.atomic():
        delete_account(alice, now=clock.now())
        transaction.set_rollback(True)
    assert tables_with(SECRET)
    assert files_with(SECRET) == before != []
    assert attachments.content_path(life.image.sha256).exists()


@pytest.mark.sqlite
def test_operators_who_are_not_admins_cannot_delete_accounts(alice: User, bob: User) -> None:
    bob.is_staff = True
    bob.save()
    client = Client()
    client.force_login(bob)
    assert client.post(f"/admin/chatapp/user/{alice.pk}/delete/", {"post": "yes"}).status_code == 403
    assert User.objects.filter(pk=alice.pk).exists()
