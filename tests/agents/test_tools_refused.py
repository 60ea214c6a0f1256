"""What one client does wrong changes nothing for the others of a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from agents.chat_models import prompted_model
from agents.chat_models.prompted_model import AutoToolsModel
from agents.error_mapping import map_error
from agents.errors import ModelError
from agents.types import Finished, ModelItem, ModelRequest, RequestSent, TextDelta, ToolSpec
from memory.tokens import text_message
from memory.types import Message, ToolCallPart
from tests.agents.asking import collect_steps

KEY = ("https://api.example.com/v1", "test-model")
GOOD = ToolSpec("weather", "The weather.", {"type": "object", "properties": {}})


class Provider:
    """It takes tools, and refuses a schema in OpenAI's words, which name the client's function."""

    name = "test-model"

    def __init__(self) -> None:
        self.taken: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        for tool in request.tools:
            if tool.parameters.get("type") != "object":
                message = (
                    f"Invalid schema for function '{tool.name}': schema must be a JSON Schema of 'type: \"object\"', "
                    f"got 'type: \"{tool.parameters.get('type')}\"'."
                )
                body = {"error": {"message": message, "type": "invalid_request_error", "param": "tools[0]"}}
                raise map_error(400, body)
        self.taken.append(request)
        yield TextDelta("Fine.")
        yield Finished("stop")


async def ask(provider: Provider, tool: ToolSpec) -> None:
    # A model is made for each call, of whomever, with the same key.
    model = AutoToolsModel(provider, KEY)
    request = ModelRequest((text_message("user", "Hello"),), 100, (tool,))
    try:
        async for _ in model.stream(request):
            pass
    except ModelError:
        pass


def sent_after(name: str) -> ModelRequest:
    """Return what the provider is sent of bob's good request after alice's wrong one."""
    prompted_model._without_tools.clear()
    provider = Provider()
    try:
        asyncio.run(ask(provider, ToolSpec(name, "", {"type": "text"})))  # alice, by /v1/chat/completions
        asyncio.run(ask(provider, GOOD))  # bob
        return provider.taken[-1]
    finally:
        prompted_model._without_tools.clear()


def test_a_wrong_tool_of_one_client_takes_no_tools_from_others() -> None:
    assert sent_after("lookup").tools == (GOOD,), "an ordinary name does no harm"
    assert sent_after("tool_unsupported").tools == (GOOD,), "tools are written into prompts from now on"


class Late:
    """It refuses tools where it has begun to answer."""

    name = "test-model"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        yield RequestSent(request, {}, b"")
        yield TextDelta("Half an ans")
        raise map_error(None, {"error": {"message": "This model does not support tools."}})


async def test_after_the_first_word_no_second_answer_follows() -> None:
    prompted_model._without_tools.clear()
    request = ModelRequest((text_message("user", "Hello"),), 100, (GOOD,))
    try:
        items, error = await collect_steps(AutoToolsModel(Late(), KEY).stream(request))
    finally:
        prompted_model._without_tools.clear()
    assert error is not None
    assert items[1:] == [TextDelta("Half an ans")]


class Refuser:
    """It repeats the last message of what it refuses."""

    name = "test-model"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        message = f"Invalid content: {request.messages[-1].text!r} is too short."
        raise map_error(400, {"error": {"message": message, "type": "invalid_request_error"}})
        yield Finished("stop")


async def test_words_of_one_client_are_no_refusal_of_its_earlier_calls() -> None:
    call = Message("assistant", (ToolCallPart("1", "weather", "{}"),), 10)
    question = text_message("user", "Which requests must define tools?")
    model = AutoToolsModel(Refuser(), KEY)
    with pytest.raises(ModelError):
        async for _ in model.stream(ModelRequest((call, question), 100)):
            pass
    assert KEY not in prompted_model._without_bare_calls
