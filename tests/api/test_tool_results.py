"""Results of tools: large texts and images are stored and read on; a result that cannot be stored fails alone."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agents.tools.protocol import ToolImage
from chatapp.files.models import Offload
from chatapp.providers.models import ModelConfig
from chatapp.runs.models import ToolCall
from tests.api import own_tools
from tests.api.own_offloader import MemoryOffloader
from tests.api.own_tools import look_up
from tests.api.program import Program
from tests.api.running import new_conversation, running_service, send, wait_for_end
from tests.api.tool_talk import asks_for, start
from tests.servers.behaviour import Behaviour, says
from tests.servers.frames import estimate_prompt_tokens
from tests.servers.openai_server import ModelServer
from tests.servers.recording import RecordedRequest


@pytest.fixture(autouse=True)
def own() -> Iterator[None]:
    with own_tools.at_hand("look_up", "offloaded_page", "offloaded_grep", "offloaded_view_image"):
        yield


async def test_an_operators_own_offloader_keeps_large_results_and_reads_them_on(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, settings: Any
) -> None:
    settings.OFFLOADER = "tests.api.own_offloader.MemoryOffloader"
    MemoryOffloader.kept.clear()
    look_up.answer = lambda _: f"{'plain words ' * 20_000}THE-KEY-IS-7431{' more words' * 20_000}"

    def read_it(request: RecordedRequest) -> Behaviour:
        [reference] = re.findall(r"stored as (own-\d+)", request.messages[-1]["content"])
        return asks_for("offloaded_grep", reference=reference, pattern="THE-KEY-IS-[0-9]+")

    def answer(request: RecordedRequest) -> Behaviour:
        return says("7431" if "THE-KEY-IS-7431" in request.messages[-1]["content"] else "Lost.")

    model_server.script(asks_for("look_up"), read_it, answer)
    async with running_service():
        conversation = await new_conversation(alice_program)
        reply = (await send(alice_program, conversation, "What is the key?")).json()
    assert reply["message"]["content"] == "7431"
    assert [text for text in MemoryOffloader.kept.values() if "THE-KEY-IS-7431" in text]
    assert not await Offload.objects.aexists(), "nothing of ours"


WINDOW = 24_000
CHARS_PER_TOKEN = 4


@pytest.mark.mechanism("agentscope.offload-results")
async def test_a_value_in_an_offloaded_result_is_found_after_thirty_calls(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    """The model sees the beginning and the end of each result, a fifth of the window. The value is between them."""
    line = "The archive holds many lines that say nothing. "
    look_up.answer = lambda shelf: (
        f"Shelf {shelf['n']}. {line * 500}{'THE-KEY-IS-7431 ' if shelf['n'] == 2 else ''}{line * 300}"
    )

    def read_it(request: RecordedRequest) -> Behaviour:
        results = [message["content"] for message in request.messages if message["role"] == "tool"]
        [shelf] = [text for text in results if text.startswith("Shelf 2.")]
        assert "Shortened to make room" in shelf
        [reference] = re.findall(r"[0-9a-f-]{20,}", shelf)
        return asks_for("offloaded_grep", reference=reference, pattern="THE-KEY-IS-[0-9]+")

    def answer(request: RecordedRequest) -> Behaviour:
        found = request.messages[-1]["content"]
        return says("The key is 7431." if "THE-KEY-IS-7431" in found else f"Lost: {found}")

    model_server.script(*(asks_for("look_up", n=number) for number in range(1, 30)), read_it, answer)
    model_server.window = WINDOW  # the server refuses larger requests, as real providers do
    policy = {"max_steps": 40, "tool_result_limit": 4_800}
    await ModelConfig.objects.aupdate(context_policy=policy, context_size=WINDOW)
    async with running_service():
        conversation = await new_conversation(alice_program)
        reply = (await send(alice_program, conversation, "What is the key?")).json()
    assert reply["message"]["content"] == "The key is 7431."
    calls = [call async for call in ToolCall.objects.order_by("ordinal")]
    assert len(calls) == 30
    shown = sum(len(call.result[0]["text"]) for call in calls)
    assert shown / CHARS_PER_TOKEN > 5 * WINDOW, "what is shown of the results fills the window five times"
    requests = model_server.requests_of("chat")
    assert len(requests) == 31, "none was refused and asked again"
    assert [number for number, request in enumerate(requests) if "THE-KEY-IS-7431" in request.text] == [30]
    for request in requests:
        assert estimate_prompt_tokens(request.body) <= WINDOW - 4_000
        assert "What is the key?" in [message.get("content") for message in request.messages]
        assert called_in(request) == answered_in(request)


async def test_a_large_result_can_be_read_to_its_end_in_pages_that_are_not_cut(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    """Digits take more tokens than words: a page of the usual size would be cut again and lose its middle."""
    numbers = " ".join(str(number * 7_919) for number in range(4_000))
    look_up.answer = lambda _: numbers
    pages: list[str] = []

    def read_on(request: RecordedRequest) -> Behaviour:
        last = request.messages[-1]
        if last["role"] == "user":
            return asks_for("look_up")
        if "stored as" in last["content"]:
            [reference] = re.findall(r"stored as ([0-9a-f-]{20,})", last["content"])
            references.append(reference)
            return asks_for("offloaded_page", reference=reference)
        head, _, page = last["content"].partition("\n\n")
        pages.append(page)
        following = re.search(r"Go on with offset (\d+)", head)
        if following is None:
            return says("I have read it.")
        return asks_for("offloaded_page", reference=references[0], offset=int(following[1]))

    references: list[str] = []
    model_server.defaults["chat"] = read_on
    policy = {"max_steps": 40, "tool_result_limit": 1_500}
    await ModelConfig.objects.aupdate(context_policy=policy, context_size=WINDOW)
    async with running_service():
        conversation = await new_conversation(alice_program)
        reply = (await send(alice_program, conversation, "Read it all.")).json()
    assert reply["message"]["content"] == "I have read it."
    assert "".join(pages) == numbers
    assert len(references) == await Offload.objects.acount() == 1
    assert [call.is_cut async for call in ToolCall.objects.order_by("ordinal")] == [
        True,
        *[False] * len(pages),
    ]


def called_in(request: RecordedRequest) -> list[str]:
    return [call["id"] for message in request.messages for call in message.get("tool_calls") or ()]


def answered_in(request: RecordedRequest) -> list[str]:
    return [message["tool_call_id"] for message in request.messages if message["role"] == "tool"]


async def test_an_image_from_a_tool_is_stored_and_shown_to_the_model_on_request(
    alice_program: Program, model: ModelConfig, model_server: ModelServer
) -> None:
    def look_at_it(request: RecordedRequest) -> Behaviour:
        told = re.search(r"\[Image \(image/png\): ([\w-]+)\]", request.text)
        assert told is not None
        return asks_for("offloaded_view_image", reference=told[1])

    drawn = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(drawn, "PNG")
    look_up.images = (ToolImage(drawn.getvalue(), "image/png"),)
    model_server.script(asks_for("look_up"), look_at_it, says("It is red."), says("Still red."))
    async with running_service():
        conversation = await new_conversation(alice_program)
        await send(alice_program, conversation, "Which colour?")
        await send(alice_program, conversation, "Sure?")
    assert _images_in(model_server.requests[1]) == []
    [url] = _images_in(model_server.requests[2])
    content = base64.b64decode(url.removeprefix("data:image/png;base64,"))
    assert Image.open(io.BytesIO(content)).getpixel((0, 0)) == (255, 0, 0)
    assert _images_in(model_server.requests[3]) == []


def _images_in(request: RecordedRequest) -> list[str]:
    contents = [
        message["content"] for message in request.messages if isinstance(message.get("content"), list)
    ]
    return [part["image_url"]["url"] for parts in contents for part in parts if part["type"] == "image_url"]


async def test_a_broken_disk_fails_one_result_and_not_the_answer(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, settings: Any, tmp_path: Path
) -> None:
    settings.DATA_DIR = tmp_path
    (tmp_path / "offloads").write_text("where the folder should be")
    look_up.answer = lambda arguments: "line of words\n" * 50_000
    model_server.script(asks_for("look_up"), says("Too much for me."))
    async with running_service():
        conversation = await new_conversation(alice_program)
        answer = (await send(alice_program, conversation, "Look!")).json()
        trace = (await alice_program.get(f"runs/{answer['run_id']}/trace")).json()
    assert answer["message"]["content"] == "Too much for me."
    [call] = trace["iterations"][0]["tools"]
    assert (call["state"], call["offload_ref"]) == ("failed", None)
    assert "ask for less" in model_server.requests[-1].text


@pytest.mark.parametrize(
    ("said", "stored"),
    [("a\x00b", "a\ufffdb"), ("half \ud800 of a character", "half \ufffd of a character")],
)
async def test_characters_that_no_database_can_store_are_replaced_in_tool_calls_and_results(
    alice_program: Program, model: ModelConfig, model_server: ModelServer, said: str, stored: str
) -> None:
    look_up.answer = lambda arguments: said
    model_server.script(
        Behaviour(
            text=said, tokens=0, tool_calls=({"name": "look_up", "arguments": f'{{"say": 7}} {said}'},)
        ),
        asks_for("look_up"),
        says("Done."),
    )
    async with running_service():
        _, run = await start(alice_program)
        assert (await wait_for_end(alice_program, run))["status"] == "complete"
    _, _, calling, _, _, result = model_server.requests[-1].messages
    assert calling["content"] == result["content"] == stored
    arguments = json.loads(calling["tool_calls"][0]["function"]["arguments"])
    assert arguments == {"unreadable": f'{{"say": 7}} {stored}'}
