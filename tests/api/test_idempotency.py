"""The same key never sends twice, in repeated, concurrent and later requests, whatever the response mode."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from io import BytesIO

import pytest
from PIL import Image

from chatapp.conversations.models import Message
from chatapp.files.models import Attachment
from chatapp.providers.models import ModelConfig
from chatapp.runs.models import Run
from tests.api.program import Program
from tests.api.running import new_conversation, read_all, running_service, send, wait_for_end, wait_for_words
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

LATER = {"prefer": "respond-async"}


def data_url(color: str = "red") -> str:
    buffer = BytesIO()
    Image.new("RGB", (8, 8), color).save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


async def test_a_repeated_send_gets_the_same_answer(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = await send(alice_program, conversation, client_id="k1")
        second = await send(alice_program, conversation, client_id="k1")
        assert second.json() == first.json()
        as_header = await send(alice_program, conversation, headers={"idempotency-key": "k1"})
        assert as_header.json() == first.json()
        later = await send(alice_program, conversation, client_id="k1", headers=LATER)
        assert later.json()["run_id"] == first.json()["run_id"]
        stream = await send(alice_program, conversation, client_id="k1", stream=True)
        events = await read_all(stream)
        assert (events[0].type, events[-1].type) == ("message.created", "run.finished")
        assert events[-1].data["run_id"] == first.json()["run_id"]
    assert len(model_server.requests_of("chat")) == 1


async def test_concurrent_duplicates_start_one_run(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        answers = await asyncio.gather(*(send(alice_program, conversation, client_id="k1") for _ in range(5)))
        assert [answer.status_code for answer in answers] == [200] * 5, answers[0].content
        assert len({answer.content for answer in answers}) == 1
    assert len(model_server.requests_of("chat")) == 1
    assert (await Message.objects.acount(), await Run.objects.acount()) == (2, 1)


async def test_a_duplicate_during_an_answer_waits_for_the_same_end(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("One and only.", hold_after=1))
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = asyncio.create_task(send(alice_program, conversation, client_id="k1"))
        await wait_for_words(model_server)
        second = asyncio.create_task(send(alice_program, conversation, client_id="k1"))
        stream = await send(alice_program, conversation, client_id="k1", stream=True)
        model_server.release()
        assert (await first).content == (await second).content
        events = await read_all(stream)
        assert events[-2].data["message"]["content"] == "One and only."


@pytest.mark.mechanism("contract.once")
@pytest.mark.parametrize(
    "change",
    [
        {"content": "Other words"},
        {"parent": "first"},
        {"attachments": ["file"]},
        {"model": "Test"},
        {"mode": "plan"},
    ],
    ids=str,
)
async def test_the_same_key_with_other_content_returns_422(
    alice_program: Program, model: ModelConfig, change: dict[str, object]
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        await send(alice_program, conversation, client_id="k1")
        again = await alice_program.post(
            f"conversations/{conversation}/messages", **{"content": "Hello", "client_id": "k1", **change}
        )
        assert again.status_code == 422
        assert again.error["code"] == "idempotency_mismatch"


async def test_the_key_of_a_deleted_message_returns_404(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = await send(alice_program, conversation, client_id="k1")
        question = first.json()["message"]["parent"]
        deleted = await alice_program.call("DELETE", f"conversations/{conversation}/messages/{question}")
        assert deleted.status_code == 204, deleted.content
        again = await send(alice_program, conversation, client_id="k1")
        assert (again.status_code, again.error["code"]) == (404, "not_found")


async def test_a_key_stored_by_the_previous_version_is_recognised(
    alice_program: Program, model: ModelConfig
) -> None:
    """The previous version hashed neither the model nor the mode."""
    asked = {"client_id": "k1", "model": "Test", "mode": "plan"}
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = await send(alice_program, conversation, headers=LATER, **asked)
        said = json.dumps([conversation, "Hello", [], None, None])
        stored = hashlib.sha256(said.encode()).hexdigest()
        await Message.objects.filter(client_id="k1").aupdate(request_hash=stored)
        again = await send(alice_program, conversation, headers=LATER, **asked)
        assert again.json() == first.json()
        await wait_for_end(alice_program, first.json()["run_id"])


async def test_two_different_keys_in_one_request_return_422(
    alice_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = await send(alice_program, conversation, client_id="k1", headers={"idempotency-key": "k2"})
        assert answer.status_code == 422
        assert answer.error["details"][0]["field"] == "client_id"
        assert await Message.objects.acount() == 0


async def test_a_key_belongs_to_its_user(
    alice_program: Program, charlie_program: Program, model: ModelConfig
) -> None:
    async with running_service():
        of_alice = await send(alice_program, await new_conversation(alice_program), client_id="k1")
        of_charlie = await send(charlie_program, await new_conversation(charlie_program), client_id="k1")
        assert of_charlie.status_code == 200
        assert of_charlie.json()["run_id"] != of_alice.json()["run_id"]


async def test_an_inline_image_is_stored_like_an_upload_and_sent_once_per_key(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    content = [{"type": "text", "text": "What is this?"}, {"type": "image", "data_url": data_url()}]
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = await send(alice_program, conversation, content, client_id="k1")
        assert first.status_code == 200, first.content
        second = await send(alice_program, conversation, content, client_id="k1")
        assert second.json() == first.json()
        other = [content[0], {"type": "image", "data_url": data_url("blue")}]
        assert (await send(alice_program, conversation, other, client_id="k1")).status_code == 422
        page = await alice_program.get(f"conversations/{conversation}/messages")
        image = next(part for part in page.json()["items"][0]["content"] if part["type"] == "image")
        assert (image["mime_type"], image["width"], image["height"]) == ("image/png", 8, 8)
        assert "data_url" not in image
    assert len(model_server.requests_of("chat")) == 1
    assert "data:image/png;base64," in model_server.requests[-1].text


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"type": "image"}, "content.0"),
        ({"type": "image", "file_id": "a", "data_url": "b"}, "content.0"),
        ({"type": "image", "data_url": "https://example.com/a.png"}, "content"),
        ({"type": "image", "data_url": "data:image/png;base64,###"}, "content"),
        ({"type": "sound", "data": "a"}, "content.0"),
        ({"type": "text"}, "content.0.text"),
        ("Hello", "content.0"),
    ],
    ids=str,
)
async def test_invalid_parts_return_422_with_their_paths(
    alice_program: Program, part: object, field: str
) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = await send(alice_program, conversation, [part])
        assert answer.status_code == 422
        assert answer.error["details"][0]["field"] == field
    assert await Message.objects.acount() == await Attachment.objects.acount() == 0


async def test_an_empty_message_returns_422(alice_program: Program) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        for empty in ("", "  \n", []):
            assert (await send(alice_program, conversation, empty)).status_code == 422


async def test_an_oversized_message_returns_413(alice_program: Program, settings: object) -> None:
    settings.MAX_MESSAGE_CHARS = 1_000
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = await send(alice_program, conversation, "x" * 1_001)
        assert (answer.status_code, answer.error["code"]) == (413, "too_large")


async def test_a_key_survives_a_restart(alice_program: Program, model: ModelConfig) -> None:
    async with running_service():
        conversation = await new_conversation(alice_program)
        first = await send(alice_program, conversation, client_id="k1", headers=LATER)
        await wait_for_end(alice_program, first.json()["run_id"])
    async with running_service():
        again = await send(alice_program, conversation, client_id="k1", headers=LATER)
        assert again.json() == first.json()
