"""A request of a few bytes for each reference makes the server hold an image for each."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image

from chatapp.accounts.models import User
from chatapp.features.openai_api.actions import NewItem, begin_conversation
from chatapp.features.openai_api.history import with_items
from chatapp.features.openai_api.response_schemas import NewResponse
from chatapp.features.openai_api.response_shapes import named
from chatapp.features.openai_api.schemas import MAX_MESSAGES
from chatapp.files import attachments
from chatapp.files.attachments import store_image
from chatapp.operations import clock

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_image_that_is_referred_to_often_is_read_once(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    Image.effect_noise((200, 200), 90).convert("RGB").save(content, "PNG")
    image = store_image(user=alice, name="image", content=content.getvalue())
    items = [NewItem("user", "Look.", [str(image.pk)])]
    row = begin_conversation(user=alice, items=items, metadata={}, now=clock.now()).messages.get()
    reads = []
    real = attachments.read_content

    def counted(attachment: Any) -> bytes:
        reads.append(attachment.pk)
        return real(attachment)

    monkeypatch.setattr(attachments, "read_content", counted)
    reference = {"type": "item_reference", "id": named("msg", row.pk)}
    asked = NewResponse.model_validate({"input": [reference] * 200, "store": False})
    filled = with_items(alice, asked)
    urls = [part.image_url for item in filled.items for part in item.content if part.type == "input_image"]
    held = {id(url): len(url) for url in urls}
    assert len(reads) == 1, (
        f"{len(reads)} times; {sum(held.values()):,} bytes are held for a request of {200 * 60:,}, and "
        f"{MAX_MESSAGES:,} references are taken, each to as many as 20 images"
    )
