"""An image from the upload to the model, in this turn and in later ones."""

from __future__ import annotations

import base64
import io

import httpx2
import pytest
from PIL import Image

from tests.servers.openai_server import ModelServer


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), (200, 30, 60)).save(buffer, "PNG")
    return buffer.getvalue()


def image_urls(message: dict) -> list[str]:
    content = message["content"]
    return (
        [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
        if isinstance(content, list)
        else []
    )


@pytest.mark.mechanism("fim.load-images")
def test_an_uploaded_image_reaches_the_model_and_is_rebuilt_in_later_turns(
    model: ModelServer, alice: httpx2.Client
) -> None:
    uploaded = alice.post("/api/v1/files", files={"file": ("red.png", picture(), "image/png")})
    assert uploaded.status_code == 201, uploaded.text
    conversation = alice.post("/api/v1/conversations", json={}).json()["id"]
    address = f"/api/v1/conversations/{conversation}/messages"

    first = alice.post(
        address,
        json={"content": "What is this?", "attachments": [uploaded.json()["id"]], "stream": False},
    )
    assert first.status_code == 200, first.text
    alice.post(address, json={"content": "And its colour?", "stream": False}).raise_for_status()

    [asked, again] = model.requests_of("chat")
    [url] = image_urls(asked.messages[-1])
    kind, _, data = url.partition(";base64,")
    assert kind.startswith("data:image/")
    assert Image.open(io.BytesIO(base64.b64decode(data))).size == (64, 48)
    assert image_urls(again.messages[1]) == [url], "the earlier turn still shows it"
    assert again.messages[-1]["content"] == "And its colour?"

    stored = alice.get(address).json()["items"][0]
    assert [part["type"] for part in stored["content"]] == ["image", "text"]
