"""An idempotency key is recorded for the result of its request, not for the images stored on the way."""

from __future__ import annotations

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from chatapp.accounts.models import User
from chatapp.conversations.models import Conversation
from chatapp.files.attachments import store_image
from chatapp.files.models import Attachment
from tests.api.test_idempotency import data_url
from tests.files.test_attachments import picture
from tests.memory_store.rows import new_conversation, say

pytestmark = pytest.mark.django_db(transaction=True)
KEY = {"Idempotency-Key": "retry-1"}


def test_a_shared_chat_with_images_is_copied_once_per_key(
    alice: User, alice_client: Client, charlie_client: Client
) -> None:
    source = new_conversation(alice, "Lisbon")
    question, _ = say(source, "What is this?", "A ferry.")
    for name in ("ferry.png", "beach.png"):
        image = store_image(user=alice, name=name, content=picture())
        question.parts.append({"type": "image", "file_id": str(image.pk), "mime_type": "image/png"})
        question.attachments.add(image)
    question.save()
    link = alice_client.post(
        f"/api/v1/conversations/{source.pk}/share", {}, content_type="application/json"
    ).json()
    first, again = (
        charlie_client.post(f"/api/v1/shared/{link['token']}/copy", headers=KEY) for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (201, 201), first.content
    assert first.json()["id"] == again.json()["id"]
    assert Conversation.objects.exclude(pk=source.pk).count() == 1
    copied = Conversation.objects.get(pk=first.json()["id"]).messages.get(position=0)
    assert [part["type"] for part in copied.parts] == ["text", "image", "image"]


def test_a_v1_conversation_with_images_is_made_once_per_key(alice_client: Client) -> None:
    content = [
        {"type": "input_text", "text": "This is a ferry."},
        {"type": "input_image", "image_url": data_url()},
    ]
    body = {"items": [{"type": "message", "role": "user", "content": content}]}
    first, again = (
        alice_client.post("/v1/conversations", body, content_type="application/json", headers=KEY)
        for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (200, 200), again.content
    assert first.json()["id"] == again.json()["id"]
    assert Conversation.objects.count() == 1


def test_a_file_is_uploaded_once_per_key(alice_client: Client) -> None:
    first, again = (
        alice_client.post("/api/v1/files", {"file": SimpleUploadedFile(name, content)}, headers=key)
        for name, content, key in (("a.png", picture(), KEY),) * 2
    )
    assert (first.status_code, again.status_code) == (201, 201), first.content
    assert first.json() == again.json()
    assert Attachment.objects.count() == 1
    text = SimpleUploadedFile("a.txt", b"Some words.")
    other = alice_client.post("/api/v1/files", {"file": text}, headers={"Idempotency-Key": "retry-2"})
    assert other.status_code == 201
    assert Attachment.objects.count() == 2
