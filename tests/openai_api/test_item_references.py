"""Limits of item references: a reference takes a few bytes, but the server loads its images."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import pytest
from PIL import Image
from pytest_django import Settings

from chatapp.accounts.models import User
from chatapp.features.openai_api.actions import NewItem, begin_conversation
from chatapp.features.openai_api.history import MAX_REFERENCES, with_items
from chatapp.features.openai_api.response_schemas import NewResponse
from chatapp.features.openai_api.response_shapes import named
from chatapp.features.openai_api.schemas import MAX_MESSAGES
from chatapp.files import attachments
from chatapp.files.attachments import store_image
from chatapp.files.models import Attachment
from chatapp.operations import clock
from chatapp.operations.errors import NotFound, TooLarge

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that records the id of each attachment that is read."""
    found: list[Any] = []
    real = attachments.read_content

    def counted(attachment: Any) -> bytes:
        found.append(attachment.pk)
        return real(attachment)

    monkeypatch.setattr(attachments, "read_content", counted)
    return found


def look_at(user: User, count: int = 1, text: str = "Look.") -> list[str]:
    """Store `count` messages with an image each, and return their names."""
    items = []
    for _ in range(count):
        content = io.BytesIO()
        Image.effect_noise((200, 200), 90).convert("RGB").save(content, "PNG")
        image = store_image(user=user, name="image", content=content.getvalue())
        items.append(NewItem("user", text, [str(image.pk)]))
    made = begin_conversation(user=user, items=items, metadata={}, now=clock.now())
    return [named("msg", row.pk) for row in made.messages.order_by("position")]


def referring_to(names: Iterable[str]) -> NewResponse:
    references = [{"type": "item_reference", "id": name} for name in names]
    return NewResponse.model_validate({"input": references, "store": False})


def test_an_image_that_is_referred_to_often_is_read_once(alice: User, reads: list[Any]) -> None:
    filled = with_items(alice, referring_to(look_at(alice) * 200))
    urls = [part.image_url for item in filled.items for part in item.content if part.type == "input_image"]
    held = {id(url): len(url) for url in urls}
    assert len(reads) == 1, (
        f"{len(reads)} times; {sum(held.values()):,} bytes are held for a request of {200 * 60:,}, and "
        f"{MAX_MESSAGES:,} references are taken, each to as many as 20 images"
    )


def test_items_are_in_the_order_of_their_references(alice: User, reads: list[Any]) -> None:
    first, second = look_at(alice, 2)
    filled = with_items(alice, referring_to([second, first, second]))
    assert [item.id for item in filled.items] == [second, first, second]
    assert all(len(item.content) == 2 for item in filled.items)


def test_images_that_together_exceed_the_request_limit_are_not_read(
    alice: User, reads: list[Any], settings: Settings
) -> None:
    names = look_at(alice, 4)
    settings.MAX_REQUEST_BYTES = 2 * Attachment.objects.earliest("created_at").size_bytes
    with pytest.raises(TooLarge) as refused:
        with_items(alice, referring_to(names))
    assert refused.value.details[0]["field"] == "input"
    assert reads == []
    with pytest.raises(TooLarge):
        with_items(alice, referring_to(names[:1] * 200))
    assert reads == []
    assert len(with_items(alice, referring_to(names[:1])).items) == 1


def test_texts_that_together_exceed_the_request_limit_are_refused(alice: User, settings: Settings) -> None:
    items = [NewItem("user", "x" * 1_000, [])]
    row = begin_conversation(user=alice, items=items, metadata={}, now=clock.now()).messages.get()
    settings.MAX_REQUEST_BYTES = 5_000
    name = named("msg", row.pk)
    assert len(with_items(alice, referring_to([name] * 5)).items) == 5
    with pytest.raises(TooLarge):
        with_items(alice, referring_to([name] * 6))


def test_too_many_references_are_refused_before_any_query(
    alice: User, django_assert_num_queries: Any
) -> None:
    asked = referring_to(named("msg", uuid4()) for _ in range(MAX_REFERENCES + 1))
    with django_assert_num_queries(0), pytest.raises(TooLarge):
        with_items(alice, asked)
    asked = referring_to(named("msg", uuid4()) for _ in range(MAX_REFERENCES))
    with django_assert_num_queries(1), pytest.raises(NotFound):
        with_items(alice, asked)
