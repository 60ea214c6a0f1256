"""What a copy of a shared conversation contains."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.features.sharing import api as sharing_api
from chatapp.files.attachments import store_image
from chatapp.files.selectors import stored_bytes
from chatapp.forgetting.services import forget_message
from tests.files.test_attachments import picture
from tests.memory_store.rows import NOW, new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_title_of_a_copy_is_forgotten_with_the_messages_it_was_made_of(
    alice: User, bob: User, api_client: Callable[..., Client]
) -> None:
    source = new_conversation(alice, "Coping with sarcoidosis")
    say(source, "I was told today what it is that my lungs have.", "It can be treated.")
    source.title_made_of = 1  # as `store_title` sets it
    source.save()
    link = api_client(alice).post(
        f"/api/v1/conversations/{source.pk}/share", {}, content_type="application/json"
    )
    made = api_client(bob).post(f"/api/v1/shared/{link.json()['token']}/copy")
    assert made.status_code == 201, made.content
    copy = Conversation.objects.get(pk=made.json()["id"])
    for message in copy.messages.order_by("position"):
        forget_message(bob, message.pk, now=NOW)
    copy.refresh_from_db()
    assert "sarcoidosis" not in copy.title


def test_a_copy_omits_empty_messages(alice: User, bob: User, api_client: Callable[..., Client]) -> None:
    """Forks omit them, too (`forking.actions._said`): some providers reject requests with empty messages."""
    source = new_conversation(alice, "Lisbon")
    said = say(source, "Where is the ferry?", "At Cais do Sodré.", "And the beach?", "Behind the lighthouse.")
    forget_message(alice, said[1].pk, now=NOW)
    link = api_client(alice).post(
        f"/api/v1/conversations/{source.pk}/share", {}, content_type="application/json"
    )
    made = api_client(bob).post(f"/api/v1/shared/{link.json()['token']}/copy")
    copy = Conversation.objects.get(pk=made.json()["id"])
    empty = [row.position for row in copy.messages.all() if row.parts == [{"type": "text", "text": ""}]]
    assert empty == []


@pytest.mark.parametrize("part", ["add_images", "import_conversation"])
def test_a_copy_that_fails_leaves_no_images(
    alice: User, bob: User, api_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    source = new_conversation(alice, "Lisbon")
    question, _ = say(source, "What is this?", "A ferry.")
    image = store_image(user=alice, name="ferry.png", content=picture())
    question.parts.append({"type": "image", "file_id": str(image.pk), "mime_type": "image/png"})
    question.attachments.add(image)
    question.save()
    link = api_client(alice).post(
        f"/api/v1/conversations/{source.pk}/share", {}, content_type="application/json"
    )

    def fail(*args: object, **kwargs: object) -> None:
        raise OSError("The disk is full.")

    monkeypatch.setattr(sharing_api, part, fail)
    reader = api_client(bob)
    reader.raise_request_exception = False
    made = reader.post(f"/api/v1/shared/{link.json()['token']}/copy")
    assert made.status_code >= 500, made.content
    assert stored_bytes(bob.pk) == 0
    assert stored_bytes(alice.pk) > 0
    assert reader.get("/api/v1/conversations").json()["items"] == []
    assert api_client(alice).get(f"/api/v1/files/{image.pk}").status_code == 200
