"""Idempotency keys of edits: PATCH of a message with the same `client_id` never edits or sends twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from chatapp.conversations.models import Message
from chatapp.providers.models import ModelConfig
from chatapp.runs.models import Run
from tests.api import own_tools
from tests.api.own_tools import look_up
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send, wait_for_end
from tests.api.test_idempotency import data_url
from tests.api.tool_talk import asks_for, start, wait_for_tool
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    with own_tools.at_hand("look_up"):
        yield


async def test_a_repeated_edit_of_an_answer_is_stored_once(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(says("Blue."))
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = (await send(alice_program, conversation, "Which colour?")).json()["message"]
        path = f"conversations/{conversation}/messages/{answer['id']}"
        first = await alice_program.patch(path, content="Green.", client_id="edit-1")
        again = await alice_program.patch(path, content="Green.", client_id="edit-1")
        assert (first.status_code, again.status_code) == (200, 200)
    assert again.json()["id"] == first.json()["id"]
    assert await Message.objects.filter(conversation=conversation, kind="edited").acount() == 1


async def test_a_repeated_edit_of_a_queued_message_starts_no_second_run(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("look_up"), says("En français."), says("Again."))
    async with running_service():
        look_up.release = asyncio.Event()
        conversation, run = await start(alice_program, "Tell me.")
        await wait_for_tool(alice_program, conversation, "running")
        path = f"conversations/{conversation}"
        sent = (await alice_program.post(f"{path}/inject", content="In Frnch, please.")).json()
        edit = {"content": "In French, please.", "client_id": "edit-1"}
        first = await alice_program.patch(f"{path}/messages/{sent['message_id']}", **edit)
        assert first.status_code == 200
        look_up.release.set()
        await wait_for_end(alice_program, run)
        # The response was lost, and the client retries.
        again = await alice_program.patch(f"{path}/messages/{sent['message_id']}", **edit)
        assert again.status_code == 200
        if "run_id" in again.json():
            await wait_for_end(alice_program, again.json()["run_id"])
    assert await Run.objects.filter(conversation=conversation).acount() == 1


async def test_a_repeated_edit_of_a_queued_message_with_an_image_returns_the_same_message(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("look_up"), says("A red square."), says("Again."))
    async with running_service():
        look_up.release = asyncio.Event()
        conversation, run = await start(alice_program, "Tell me.")
        await wait_for_tool(alice_program, conversation, "running")
        path = f"conversations/{conversation}"
        sent = (await alice_program.post(f"{path}/inject", content="And ths?")).json()
        parts = [{"type": "text", "text": "And this?"}, {"type": "image", "data_url": data_url()}]
        edit = {"content": parts, "client_id": "edit-1"}
        first = await alice_program.patch(f"{path}/messages/{sent['message_id']}", **edit)
        again = await alice_program.patch(f"{path}/messages/{sent['message_id']}", **edit)
        look_up.release.set()
        await wait_for_end(alice_program, run)
    assert first.status_code == 200, first.content
    assert again.status_code == 200, "the key was recorded for the image, not for the message"
    assert again.json()["id"] == first.json()["id"]
