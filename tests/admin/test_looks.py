"""Operators can read chats only if the deployment permits it. Users are informed, and each look is recorded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from pytest_django.fixtures import Settings

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.conversations.operator_reads import MESSAGES_SHOWN
from chatapp.operations.models import AuditEvent
from tests.memory_store.rows import new_conversation, say


@pytest.fixture
def conversation(alice: User, settings: Settings) -> Conversation:
    settings.OPERATORS_READ_CHATS = True
    conversation = new_conversation(alice)
    say(conversation, "Where is the ferry?", "At <b>the</b> pier.")
    return conversation


def look(client: Client, conversation: Conversation, **form: object) -> str:
    answer = client.post(f"/admin/chatapp/conversation/{conversation.pk}/look/", form)
    return answer.content.decode() if answer.status_code == 200 else str(answer.status_code)


def test_an_admin_reads_a_chat_after_giving_a_reason_which_is_logged(
    admin_client: Client, admin_user: User, alice: User, conversation: Conversation
) -> None:
    page = f"/admin/chatapp/conversation/{conversation.pk}"
    assert f"{page}/look/" in admin_client.get(f"{page}/change/").content.decode()
    assert "ferry" not in admin_client.get(f"{page}/look/").content.decode()
    assert "ferry" not in look(admin_client, conversation, reason=" ")
    assert not AuditEvent.objects.filter(kind="looked").exists()
    shown = look(admin_client, conversation, reason="Ticket 7")
    assert "Where is the ferry?" in shown
    assert "At &lt;b&gt;the&lt;/b&gt; pier." in shown
    event = AuditEvent.objects.get(kind="looked")
    assert (event.user_id, event.actor_id) == (alice.pk, admin_user.pk)
    assert event.detail == {"conversation": str(conversation.pk), "reason": "Ticket 7"}
    listed = admin_client.get("/admin/chatapp/auditevent/", {"kind": "looked"}).content.decode()
    assert "Ticket 7" in listed


def test_each_page_of_a_long_chat_is_recorded_as_a_look(
    admin_client: Client, conversation: Conversation
) -> None:
    for number in range(MESSAGES_SHOWN // 2):
        say(conversation, f"Question {number}", "Answer")
    newest = look(admin_client, conversation, reason="Ticket 7")
    assert "ferry" not in newest
    first = conversation.messages.order_by("position")[2].position
    assert "ferry" in look(admin_client, conversation, reason="Ticket 7", before=first)
    assert AuditEvent.objects.filter(kind="looked").count() == 2


def test_admins_cannot_read_chats_unless_the_deployment_permits_it(
    admin_client: Client, conversation: Conversation, settings: Settings
) -> None:
    settings.OPERATORS_READ_CHATS = False
    page = admin_client.get(f"/admin/chatapp/conversation/{conversation.pk}/change/").content.decode()
    assert "/look/" not in page
    assert look(admin_client, conversation, reason="Curious") == "404"
    assert not AuditEvent.objects.filter(kind="looked").exists()


def test_admins_cannot_read_temporary_chats(admin_client: Client, conversation: Conversation) -> None:
    Conversation.objects.filter(pk=conversation.pk).update(temporary=True)
    assert look(admin_client, conversation, reason="Ticket 7") == "404"


def test_operators_who_are_not_admins_and_users_cannot_read_chats(
    client: Client, bob: User, charlie: User, conversation: Conversation
) -> None:
    bob.is_staff = True
    bob.save()
    bob.user_permissions.set(Permission.objects.filter(content_type__model="conversation"))
    for user in (bob, charlie):
        client.force_login(user)
        assert look(client, conversation, reason="Curious") == "404"
    assert not AuditEvent.objects.filter(kind="looked").exists()


def test_the_page_and_the_api_tell_users_that_operators_read_chats(
    browser_client: Callable[[User], Client],
    alice: User,
    conversation: Conversation,
    settings: Settings,
) -> None:
    page = browser_client(alice)
    told = '<meta name="operators-read"'
    assert told in page.get("/").content.decode()
    assert page.get("/api/v1/me").json()["operators_read_chats"]
    settings.OPERATORS_READ_CHATS = False
    assert told not in page.get("/").content.decode()
    assert not page.get("/api/v1/me").json()["operators_read_chats"]
