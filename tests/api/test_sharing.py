"""Share links: what they show, to whom, for how long, and what their copies contain."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from PIL import Image
from pytest_django import Settings

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation, Message
from chatapp.features.sharing import api as sharing_api
from chatapp.features.sharing.models import SharedConversation
from chatapp.files.attachments import store_image
from chatapp.files.models import Attachment
from chatapp.forgetting.services import forget_message, forget_whole_conversation
from chatapp.operations import clock
from tests.forgetting.everywhere import tables_with
from tests.memory_store.rows import new_conversation, say

pytestmark = [pytest.mark.django_db]


@pytest.fixture
def conversation(alice: User) -> Conversation:
    made = new_conversation(alice, "Lisbon")
    say(made, "Where is the ferry?", "At Cais do Sodré.")
    return made


def share(client: Client, conversation: Conversation, **fields: Any) -> dict[str, Any]:
    answer = client.post(
        f"/api/v1/conversations/{conversation.pk}/share", fields, content_type="application/json"
    )
    assert answer.status_code in (200, 201), answer.content
    shared: dict[str, Any] = answer.json()
    return shared


def shown(client: Client, token: str) -> list[Any]:
    answer = client.get(f"/api/v1/shared/{token}")
    assert answer.status_code == 200, answer.content
    return [item["content"] for item in answer.json()["items"]]


def test_a_link_shows_the_snapshot_to_anybody_but_no_later_messages(
    alice_client: Client, client: Client, conversation: Conversation
) -> None:
    link = share(alice_client, conversation)
    say(conversation, "And the secret beach?", "Behind the lighthouse.")
    assert shown(client, link["token"]) == ["Where is the ferry?", "At Cais do Sodré."]
    assert share(alice_client, conversation)["token"] == link["token"]
    assert shown(client, link["token"])[-1] == "Behind the lighthouse."


def test_an_answer_in_progress_at_the_time_of_sharing_is_not_shown_later(
    alice_client: Client, client: Client, conversation: Conversation
) -> None:
    """An injected message swaps positions with the answer, as when an answer reads it."""
    [question] = say(conversation, "And the secret beach?")
    [answer] = say(conversation, "Behind", status="streaming")
    [injected] = say(conversation, "The one in the north.", role="user")
    Message.objects.filter(pk=answer.pk).update(parent=question)
    link = share(alice_client, conversation)
    Message.objects.filter(pk=answer.pk).update(position=conversation.next_position, status="complete")
    Message.objects.filter(pk=injected.pk).update(position=answer.position)
    Message.objects.filter(pk=answer.pk).update(position=injected.position)
    known = ["Where is the ferry?", "At Cais do Sodré.", "And the secret beach?"]
    assert shown(client, link["token"]) == known
    share(alice_client, conversation)
    assert shown(client, link["token"]) == [*known, "The one in the north.", "Behind"]


def test_a_link_shows_the_title_of_the_time_of_sharing(
    alice_client: Client, charlie_client: Client, client: Client, conversation: Conversation
) -> None:
    link = share(alice_client, conversation)
    address = f"/api/v1/conversations/{conversation.pk}"
    alice_client.patch(address, {"title": "Leaving Rob"}, content_type="application/json")
    seen = [client.get(f"/api/v1/shared/{link['token']}"), client.get(link["url"])]
    assert [b"Leaving Rob" in page.content for page in seen] == [False, False]
    assert seen[0].json()["title"] == "Lisbon"
    made = charlie_client.post(f"/api/v1/shared/{link['token']}/copy", {}, content_type="application/json")
    assert charlie_client.get(f"/api/v1/conversations/{made.json()['id']}").json()["title"] == "Lisbon"
    share(alice_client, conversation)
    assert client.get(f"/api/v1/shared/{link['token']}").json()["title"] == "Leaving Rob"


def test_pages_of_a_snapshot_follow_each_other(
    alice_client: Client, client: Client, conversation: Conversation
) -> None:
    say(conversation, "Second?", "Yes.")
    token = share(alice_client, conversation)["token"]
    first = client.get(f"/api/v1/shared/{token}", {"limit": 3}).json()
    rest = client.get(f"/api/v1/shared/{token}", {"limit": 3, "after": first["next_cursor"]}).json()
    assert [len(first["items"]), len(rest["items"]), rest["next_cursor"]] == [3, 1, None]


def test_a_revoked_link_never_works_again(
    alice_client: Client, client: Client, conversation: Conversation
) -> None:
    old = share(alice_client, conversation)["token"]
    address = f"/api/v1/conversations/{conversation.pk}/share"
    assert alice_client.get(address).json()["token"] == old
    assert alice_client.delete(address).status_code == 204
    unshared = alice_client.get(address)
    assert (unshared.status_code, unshared.json()) == (200, None)
    assert alice_client.delete(address).status_code == 404
    new = share(alice_client, conversation)["token"]
    assert new != old
    assert client.get(f"/api/v1/shared/{old}").status_code == 404
    assert client.get(f"/s/{old}").status_code == 404


def test_a_link_expires_at_the_requested_time(
    alice_client: Client, client: Client, conversation: Conversation
) -> None:
    soon = clock.now() + timedelta(hours=1)
    token = share(alice_client, conversation, expires_at=soon.isoformat())["token"]
    assert client.get(f"/api/v1/shared/{token}").status_code == 200
    SharedConversation.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    assert client.get(f"/api/v1/shared/{token}").status_code == 404
    past = {"expires_at": (clock.now() - timedelta(hours=1)).isoformat()}
    answer = alice_client.post(
        f"/api/v1/conversations/{conversation.pk}/share", past, content_type="application/json"
    )
    assert answer.status_code == 422
    assert answer.json()["error"]["details"][0]["field"] == "expires_at"


@pytest.mark.parametrize("token", ["x", "a.b", "0" * 32, f"{'0' * 32}.{'x' * 43}", "%00", "..", "ä"])
def test_an_invalid_token_is_not_found(client: Client, token: str) -> None:
    assert client.get(f"/api/v1/shared/{token}").status_code == 404
    assert client.get(f"/s/{token}").status_code == 404


def test_a_link_shows_neither_reasoning_nor_the_owner(
    alice: User, alice_client: Client, client: Client, conversation: Conversation
) -> None:
    _, answer = say(conversation, "Look it up.", "Done.")
    answer.parts = [{"type": "reasoning", "text": "SECRET THOUGHT"}, *answer.parts]
    answer.save()
    token = share(alice_client, conversation)["token"]
    page = client.get(f"/api/v1/shared/{token}")
    assert b"SECRET" not in page.content
    assert alice.email.encode() not in page.content
    assert set(page.json()["items"][0]) == {"id", "role", "content", "status", "model", "created_at"}


def test_forgotten_messages_disappear_from_the_snapshot(
    alice: User, alice_client: Client, client: Client, conversation: Conversation
) -> None:
    token = share(alice_client, conversation)["token"]
    Message.objects.filter(conversation=conversation).update(parts=[], forgotten_at=clock.now())
    assert shown(client, token) == ["", ""]
    forget_whole_conversation(alice, str(conversation.pk), now=clock.now())
    assert client.get(f"/api/v1/shared/{token}").status_code == 404


@pytest.mark.parametrize(
    ("title", "made_of"), [("Where is the ferry?", None), ("A boat across the Tejo", 1), ("Lisbon", None)]
)
def test_the_title_of_a_link_is_forgotten_with_the_messages_it_was_made_of(
    alice: User, alice_client: Client, client: Client, title: str, made_of: int | None
) -> None:
    conversation = new_conversation(alice, title)
    question, _, beach, _ = say(conversation, "Where is the ferry?", "At the quay.", "The beach?", "There.")
    conversation.title_made_of = made_of
    conversation.save()
    token = share(alice_client, conversation)["token"]
    Conversation.objects.filter(pk=conversation.pk).update(title="Private", title_made_of=None)
    forget_message(alice, beach.pk, now=clock.now())
    assert client.get(f"/api/v1/shared/{token}").json()["title"] == title
    forget_message(alice, question.pk, now=clock.now())
    left = "Lisbon" if title == "Lisbon" else ""
    assert client.get(f"/api/v1/shared/{token}").json()["title"] == left
    assert tables_with("Tejo") == tables_with("ferry") == []


def test_images_are_shown_by_the_link_without_signing_in_and_copied(
    alice: User,
    alice_client: Client,
    charlie_client: Client,
    client: Client,
    conversation: Conversation,
    settings: Settings,
) -> None:
    drawn = io.BytesIO()
    Image.new("RGB", (4, 3), "teal").save(drawn, "PNG")
    image = store_image(user=alice, name="ferry.png", content=drawn.getvalue())
    other = store_image(user=alice, name="other.png", content=drawn.getvalue(), is_asked_for=True)
    question, _ = say(conversation, "What is this?", "A ferry.")
    question.parts = [
        *question.parts,
        {"type": "image", "file_id": str(image.pk), "mime_type": "image/png", "width": 4, "height": 3},
    ]
    question.save()
    question.attachments.add(image)
    token = share(alice_client, conversation)["token"]
    parts = shown(client, token)[2]
    assert parts[1]["url"] == f"/api/v1/shared/{token}/images/{image.pk}"
    picture = client.get(parts[1]["url"])
    assert picture["Content-Type"] == "image/png"
    assert picture["Cache-Control"] == "private, no-store"
    assert client.get(f"/api/v1/shared/{token}/images/{other.pk}").status_code == 404

    settings.MAX_STORED_BYTES = image.size_bytes - 1
    refused = charlie_client.post(f"/api/v1/shared/{token}/copy", {}, content_type="application/json")
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "storage_full")
    assert charlie_client.get("/api/v1/conversations").json()["items"] == []
    settings.MAX_STORED_BYTES = 2 * image.size_bytes
    made = charlie_client.post(f"/api/v1/shared/{token}/copy", {}, content_type="application/json")
    assert made.status_code == 201
    messages = charlie_client.get(f"/api/v1/conversations/{made.json()['id']}/messages").json()["items"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    own = messages[2]["content"][1]["file_id"]
    assert own != str(image.pk)
    assert Attachment.objects.get(pk=own).user.email != alice.email
    assert charlie_client.get(f"/api/v1/files/{own}").status_code == 200


def test_a_copy_that_fails_halfway_leaves_no_conversation(
    charlie_client: Client,
    alice_client: Client,
    conversation: Conversation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("The disk is full.")

    token = share(alice_client, conversation)["token"]
    monkeypatch.setattr(sharing_api, "add_images", fail)
    charlie_client.raise_request_exception = False
    made = charlie_client.post(f"/api/v1/shared/{token}/copy", {}, content_type="application/json")
    assert made.status_code >= 500
    assert charlie_client.get("/api/v1/conversations").json()["items"] == []


def test_only_the_owner_can_share_and_only_signed_in_users_can_copy(
    charlie_client: Client, alice_client: Client, client: Client, conversation: Conversation
) -> None:
    address = f"/api/v1/conversations/{conversation.pk}/share"
    assert charlie_client.post(address, {}, content_type="application/json").status_code == 404
    assert charlie_client.get(address).status_code == 404
    assert client.post(address, {}, content_type="application/json").status_code == 401
    token = share(alice_client, conversation)["token"]
    assert charlie_client.delete(address).status_code == 404
    assert client.post(f"/api/v1/shared/{token}/copy", {}, content_type="application/json").status_code == 401


def test_the_page_is_not_indexed_by_search_engines(
    alice_client: Client, client: Client, conversation: Conversation
) -> None:
    page = client.get(share(alice_client, conversation)["url"])
    assert page.status_code == 200
    assert page["X-Robots-Tag"] == "noindex, nofollow"
    assert page["Referrer-Policy"] == "no-referrer"
    assert b'content="noindex, nofollow"' in page.content
