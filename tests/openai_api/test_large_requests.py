"""Large requests are validated and decoded once and in threads, so that they do not block other requests."""

from __future__ import annotations

import base64
import threading
from typing import Annotated, Any

import pytest
from django.http import HttpRequest, JsonResponse
from django.test import AsyncClient
from pydantic import AfterValidator
from pytest_django import Settings

from chatapp.features.openai_api import reading
from chatapp.features.openai_api.api import build_openai_api
from chatapp.features.openai_api.errors import in_openai_shape
from chatapp.features.openai_api.reading import PIECE_CHARS, decoded_image, inline_images
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.api import json_patterns
from chatapp.operations.http.bodies import LARGE_BYTES
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body
from tests.context_engine.chatting import on_a_loop

pytestmark = pytest.mark.django_db(transaction=True)

checked_in: list[int] = []


def note_thread(word: str) -> str:
    checked_in.append(threading.get_ident())
    return word


class Words(Body):
    words: list[Annotated[str, AfterValidator(note_thread)]]


router = Router()


@router.post("/words", auth=None)
async def count_words(request: HttpRequest, asked: Words) -> Any:
    return JsonResponse({"count": len(asked.words)})


urlpatterns = json_patterns(build_openai_api([router]), "v1", in_openai_shape)


@pytest.fixture(autouse=True)
def these_addresses(settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    checked_in.clear()


async def post_words(words: list[Any], **more: Any) -> Any:
    headers = {"Authorization": "Bearer x"}
    body = {"words": words, **more}
    return await AsyncClient().post("/v1/words", body, content_type="application/json", headers=headers)


MANY = ["word"] * (LARGE_BYTES // 4)


@on_a_loop
async def test_a_large_body_is_validated_once_and_in_a_thread() -> None:
    answer = await post_words(MANY)
    assert (answer.status_code, answer.json()) == (200, {"count": len(MANY)})
    assert len(checked_in) == len(MANY)
    assert threading.get_ident() not in checked_in


@on_a_loop
async def test_errors_of_a_large_body_are_like_those_of_a_small_one() -> None:
    for words in (["word"], MANY):
        checked_in.clear()
        answer = await post_words([*words, 5], wrods=1)
        error = answer.json()["error"]
        assert answer.status_code == 400
        assert (error["param"], error["type"]) == (f"words.{len(words)}", "invalid_request_error")
        assert len(checked_in) == len(words)
    assert threading.get_ident() not in checked_in


def in_base64(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def test_an_image_is_decoded_in_pieces() -> None:
    for size in (0, 1, 2, 3, PIECE_CHARS, PIECE_CHARS // 4 * 3, 2 * PIECE_CHARS + 1):
        content = bytes(number % 251 for number in range(size))
        assert decoded_image(in_base64(content)) == content


@pytest.mark.parametrize(
    "text",
    [
        "x" * (PIECE_CHARS - 2) + "==" + "xxxx",
        "xxxx=xxx",
        "x",
        "xx\nxx",
        "xxé=",
        "====",
    ],
    ids=["padding at the end of a piece", "padding within", "one", "line", "letter", "nothing"],
)
def test_invalid_base64_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not valid base64"):
        decoded_image(f"data:image/png;base64,{text}")


@on_a_loop
async def test_images_are_decoded_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    real = reading.decoded_image

    def noted(data_url: str) -> bytes:
        note_thread(data_url)
        return real(data_url)

    monkeypatch.setattr(reading, "decoded_image", noted)
    address = in_base64(b"An image.")
    assert await inline_images([address]) == {address: address}
    assert checked_in
    assert threading.get_ident() not in checked_in
