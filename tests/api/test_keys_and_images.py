"""Keys: what a repeated request gets, and what it loses."""

from __future__ import annotations

import asyncio
import base64
import io
from collections.abc import Iterator

import pytest
from PIL import Image

from chatapp.accounts.models import User
from chatapp.conversations.actions.conversations import create_conversation
from chatapp.conversations.models import Conversation, Message
from chatapp.features.openai_api.turns import NewTurn, begin_turn
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from tests.api import own_tools
from tests.api.own_tools import look_up
from tests.api.program import Program
from tests.api.running import running_service, wait_for_end
from tests.api.tool_talk import asks_for, start, wait_for_tool
from tests.servers.behaviour import says
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "retry-1"


@pytest.fixture
def own() -> Iterator[None]:
    with own_tools.at_hand("look_up"):
        yield


def data_url() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (3, 3), "red").save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def test_an_edit_of_a_queued_message_with_an_image_in_it_can_be_sent_again(
    own: None, alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    model_server.script(asks_for("look_up"), says("A red square."), says("Again."))
    async with running_service():
        look_up.release = asyncio.Event()
        conversation, run = await start(alice_program, "Tell me.")
        await wait_for_tool(alice_program, conversation, "running")
        path = f"conversations/{conversation}"
        sent = (await alice_program.post(f"{path}/inject", content="And ths?")).json()
        parts = [{"type": "text", "text": "And this?"}, {"type": "image", "data_url": data_url()}]
        edit = {"content": parts, "client_id": KEY}
        first = await alice_program.patch(f"{path}/messages/{sent['message_id']}", **edit)
        again = await alice_program.patch(f"{path}/messages/{sent['message_id']}", **edit)
        look_up.release.set()
        await wait_for_end(alice_program, run)
    assert first.status_code == 200, first.content
    assert again.status_code == 200, "the key was recorded for the image, not for the message"
    assert again.json()["id"] == first.json()["id"]


@pytest.fixture
def some_model() -> ModelConfig:
    return ModelConfig.objects.create(
        name="M", model_id="m", base_url="http://127.0.0.1:1", is_default=True, context_size=32_000
    )


def test_a_key_of_a_conversation_in_deletion_takes_no_instructions_away(
    alice: User, some_model: ModelConfig
) -> None:
    first = create_conversation(user=alice, now=clock.now())
    begin_turn(alice, first, NewTurn("Hello", client_id=KEY), None)
    Conversation.objects.filter(pk=first.pk).update(user=None)  # in deletion, or in the trash
    second = create_conversation(user=alice, now=clock.now())
    turn = NewTurn("Hello", instructions="Answer in French.", client_id=KEY)
    receipt = begin_turn(alice, second, turn, None)
    assert receipt.is_new
    assert receipt.conversation_id == str(second.pk)
    kept = Message.objects.filter(conversation=second, role="system")
    assert kept.exists(), "the question was stored, and its instructions were not"
