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
from chatapp.files.models import Attachment

Clients = Callable[[User], Client]


def upload(client: Client, content: bytes | None = None, name: str = "cat.png"):
    if content is None:
        buffer = io.BytesIO()
        Image.new("RGB", (5, 4)).save(buffer, "PNG")
        content = buffer.getvalue()
    return client.post("/api/v1/files", {"file": SimpleUploadedFile(name, content, "image/png")})


def test_an_uploaded_image_comes_back_as_an_image_only_its_owner_sees(
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
    assert shown["Cache-Control"] == "private, max-age=31536000, immutable"

    assert api_client(charlie).get(stored["url"]).status_code == 404
    assert api_client(charlie).delete(stored["url"]).status_code == 404
    assert Client().get(stored["url"]).status_code == 401


def test_a_deleted_file_is_gone(alice: User, api_client: Clients):
    client = api_client(alice)
    url = upload(client).json()["url"]
    assert client.delete(url).status_code == 204
    assert client.get(url).status_code == 404
    assert not Attachment.objects.exists()


def test_what_is_no_image_is_told_so(alice: User, api_client: Clients):
    answer = upload(api_client(alice), b"<svg onload=alert(1)>", "cat.png")
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "not_an_image"


def test_what_is_too_large_is_told_so(alice: User, api_client: Clients, settings: Settings):
    settings.MAX_UPLOAD_BYTES = 20
    answer = upload(api_client(alice))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


def test_a_name_that_points_elsewhere_stays_a_name(alice: User, api_client: Clients):
    client = api_client(alice)
    stored = upload(client, name='../../etc/pass"wd\r\nX-Evil: 1.png').json()
    shown = client.get(stored["url"])
    assert "X-Evil" not in shown
    assert shown["Content-Disposition"] == f'inline; filename="{stored["id"]}.png"'


@pytest.mark.parametrize("file_id", ["nothing", "00000000-0000-7000-8000-000000000000"])
def test_an_unknown_id_is_not_found(alice: User, api_client: Clients, file_id: str):
    assert api_client(alice).get(f"/api/v1/files/{file_id}").status_code == 404
