import io
from collections.abc import Callable
from typing import cast

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import FileResponse
from django.test import Client
from PIL import Image
from pytest_django import Settings

from chatapp.accounts.models import User
from chatapp.conversations.message_values import parts_from_json
from chatapp.conversations.models import Message
from chatapp.files.actions import GONE
from chatapp.files.models import Attachment
from chatapp.operations import clock
from chatapp.runs.actions.sending import NewMessage, send_message
from chatapp.runs.models import Run
from memory.tokens import estimate_parts
from tests.memory_store.rows import new_conversation

Clients = Callable[[User], Client]


def upload(client: Client, content: bytes | None = None, name: str = "cat.png"):
    if content is None:
        buffer = io.BytesIO()
        Image.new("RGB", (5, 4)).save(buffer, "PNG")
        content = buffer.getvalue()
    return client.post("/api/v1/files", {"file": SimpleUploadedFile(name, content, "image/png")})


def test_an_uploaded_image_is_served_as_an_image_to_its_owner_only(
    alice: User, charlie: User, api_client: Clients
):
    made = upload(api_client(alice))
    assert made.status_code == 201
    stored = made.json()
    assert (stored["mime_type"], stored["width"], stored["height"], stored["name"]) == (
        "image/png",
        5,
        4,
        "cat.png",
    )

    shown = api_client(alice).get(stored["url"])
    assert shown.status_code == 200
    assert b"".join(cast(FileResponse, shown).streaming_content).startswith(b"\x89PNG")
    assert shown["Content-Type"] == "image/png"
    assert shown["X-Content-Type-Options"] == "nosniff"
    assert shown["Content-Disposition"] == f'inline; filename="{stored["id"]}.png"'
    assert shown["Cache-Control"] == "private, no-cache"

    assert api_client(charlie).get(stored["url"]).status_code == 404
    assert api_client(charlie).delete(stored["url"]).status_code == 404
    assert Client().get(stored["url"]).status_code == 401


def test_a_deleted_file_is_gone(alice: User, api_client: Clients):
    client = api_client(alice)
    url = upload(client).json()["url"]
    assert client.delete(url).status_code == 204
    assert client.get(url).status_code == 404
    assert not Attachment.objects.exists()


def test_an_upload_that_is_no_image_returns_422(alice: User, api_client: Clients):
    answer = upload(api_client(alice), b"<svg onload=alert(1)>", "cat.png")
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "not_an_image"


def test_an_upload_that_is_too_large_returns_413(alice: User, api_client: Clients, settings: Settings):
    settings.MAX_UPLOAD_BYTES = 20
    answer = upload(api_client(alice))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


def test_a_malicious_file_name_adds_no_path_and_no_header(alice: User, api_client: Clients):
    client = api_client(alice)
    stored = upload(client, name='../../etc/pass"wd\r\nX-Evil: 1.png').json()
    shown = client.get(stored["url"])
    assert "X-Evil" not in shown
    assert shown["Content-Disposition"] == f'inline; filename="{stored["id"]}.png"'


@pytest.mark.parametrize("file_id", ["nothing", "00000000-0000-7000-8000-000000000000"])
def test_an_unknown_id_is_not_found(alice: User, api_client: Clients, file_id: str):
    assert api_client(alice).get(f"/api/v1/files/{file_id}").status_code == 404


def test_deleting_a_file_removes_the_message_parts_that_name_it(alice: User, api_client: Clients):
    client = api_client(alice)
    conversation = new_conversation(alice)
    both, alone = upload(client).json()["id"], upload(client, b"A note.", "note.txt").json()["id"]
    for text, file_id in (("Look", both), ("", alone)):
        send_message(
            user=alice,
            conversation_id=str(conversation.pk),
            new=NewMessage(text=text, attachment_ids=[file_id]),
            model=None,
            now=clock.now(),
        )
        Run.objects.update(status="complete")
    for file_id in (both, alone):
        assert client.delete(f"/api/v1/files/{file_id}").status_code == 204
    said = list(Message.objects.filter(role="user").order_by("position"))
    assert [row.parts for row in said] == [[{"type": "text", "text": "Look"}], [GONE]]
    assert [row.token_estimate for row in said] == [
        estimate_parts(parts_from_json(row.parts)) for row in said
    ]
    shown = client.get(f"/api/v1/conversations/{conversation.pk}/messages").content.decode()
    assert both not in shown
    assert alone not in shown


def test_uploads_beyond_the_storage_limit_of_a_user_are_refused(
    alice: User, bob: User, api_client: Clients, settings: Settings
):
    settings.MAX_STORED_BYTES = 1_000
    first = upload(api_client(alice), b"x" * 600, "a.txt")
    assert first.status_code == 201
    refused = upload(api_client(alice), b"y" * 600, "b.txt")
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, "storage_full")
    assert upload(api_client(bob), b"y" * 600, "b.txt").status_code == 201, "another's files do not count"
    assert api_client(alice).delete(first.json()["url"]).status_code == 204
    assert upload(api_client(alice), b"y" * 600, "b.txt").status_code == 201
