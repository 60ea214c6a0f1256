"""One client's invalid requests do not change how the server is called for others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from agents.chat_models import prompted_model
from agents.chat_models.error_mapping import map_error
from agents.chat_models.prompted_model import AutoToolsModel
from agents.errors import ModelError
from agents.types import Finished, ModelItem, ModelRequest, RequestSent, TextDelta, ToolSpec
from memory.tokens import text_message
from memory.types import Message, ToolCallPart
from tests.agents.asking import collect_steps

KEY = ("https://api.example.com/v1", "test-model")
GOOD = ToolSpec("weather", "The weather.", {"type": "object", "properties": {}})


class Provider:
    """A provider that supports tools and refuses an invalid schema in OpenAI's words, which name the function."""

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
    # Every call creates its own model, with the same key for all users.
    model = AutoToolsModel(provider, KEY)
    request = ModelRequest((text_message("user", "Hello"),), 100, (tool,))
    try:
        async for _ in model.stream(request):
            pass
    except ModelError:
        pass


def sent_after(name: str) -> ModelRequest:
    """Return bob's valid request as the provider got it, after alice's invalid one."""
    prompted_model._without_tools.clear()
    provider = Provider()
    try:
        asyncio.run(
            ask(provider, ToolSpec(name, "", {"type": "text"}))
        )  # alice, through /v1/chat/completions
        asyncio.run(ask(provider, GOOD))  # bob
        return provider.taken[-1]
    finally:
        prompted_model._without_tools.clear()


def test_an_invalid_tool_of_one_client_does_not_disable_tools_for_others() -> None:
    assert sent_after("lookup").tools == (GOOD,), "an ordinary name does no harm"
    assert sent_after("tool_unsupported").tools == (GOOD,), "tools are written into prompts from now on"


class Late:
    """A provider that refuses tools after it has begun to answer."""

    name = "test-model"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        yield RequestSent(request, {}, b"")
        yield TextDelta("Half an ans")
        raise map_error(None, {"error": {"message": "This model does not support tools."}})


async def test_a_refusal_of_tools_after_the_first_word_is_not_retried() -> None:
    prompted_model._without_tools.clear()
    request = ModelRequest((text_message("user", "Hello"),), 100, (GOOD,))
    try:
        items, error = await collect_steps(AutoToolsModel(Late(), KEY).stream(request))
    finally:
        prompted_model._without_tools.clear()
    assert error is not None
    assert items[1:] == [TextDelta("Half an ans")]


class Refuser:
    """A provider that refuses every request and quotes its last message."""

    name = "test-model"

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelItem, None]:
        message = f"Invalid content: {request.messages[-1].text!r} is too short."
        raise map_error(400, {"error": {"message": message, "type": "invalid_request_error"}})
        yield Finished("stop")


async def test_quoted_words_of_a_client_are_not_taken_as_a_refusal_of_calls_without_tools() -> None:
    call = Message("assistant", (ToolCallPart("1", "weather", "{}"),), 10)
    question = text_message("user", "Which requests must define tools?")
    model = AutoToolsModel(Refuser(), KEY)
    with pytest.raises(ModelError):
        async for _ in model.stream(ModelRequest((call, question), 100)):
            pass
    assert KEY not in prompted_model._without_bare_calls
