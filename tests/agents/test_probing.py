"""The Test action of the admin panel: what it detects at an address and what it reports."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from agents.chat_models.openai_model import OpenAIModel
from agents.chat_models.probing import list_models, probe_model, read_listing
from agents.errors import ModelError
from agents.types import ListedModel, ModelEndpoint
from tests.servers.behaviour import ERRORS, Behaviour, says
from tests.servers.openai_server import ModelServer


@pytest.mark.parametrize(
    ("row", "window", "output"),
    [
        ({"id": "m", "max_model_len": 32768}, 32768, None),  # vLLM, SGLang
        ({"id": "m", "context_length": 200000, "top_provider": {"context_length": 128000,
          "max_completion_tokens": 16384}}, 128000, 16384),  # OpenRouter
        ({"id": "m", "context_window": 131072, "max_completion_tokens": 32768}, 131072, 32768),  # Groq
        ({"id": "m", "max_context_length": 131072, "loaded_context_length": 8192}, 8192, None),  # LM Studio
        ({"id": "m", "meta": {"n_ctx_train": 131072, "n_params": 8}}, 131072, None),  # llama.cpp
        ({"id": "m", "meta": {"n_ctx_train": 131072, "n_ctx": 4096}}, 4096, None),  # llama.cpp, as started
        ({"name": "models/gemini", "inputTokenLimit": 1048576, "outputTokenLimit": 65536}, 1048576, 65536),
        ({"id": "m", "context_length": 0}, None, None),
        ({"id": "m", "context_length": True, "max_model_len": "many"}, None, None),
        ({"id": "m", "context_length": 1e400, "max_model_len": 10**30}, None, None),
        ({"id": "m"}, None, None),
    ],
)  # fmt: skip
def test_the_window_is_read_from_each_servers_own_field(
    row: dict[str, Any], window: int | None, output: int | None
) -> None:
    [listed] = read_listing({"object": "list", "data": [row]})
    assert (listed.context_size, listed.max_output_tokens) == (window, output)


@pytest.mark.parametrize("answer", [None, "<html>", {}, {"data": None}, {"data": ["m", {"id": 7}, {}]}])
def test_an_invalid_listing_is_read_as_empty(answer: object) -> None:
    assert read_listing(answer) == []


async def test_the_models_of_an_address_are_listed(server: ModelServer, model: OpenAIModel) -> None:
    server.models = ["small", {"id": "large", "max_model_len": 65536}]
    assert await list_models(model.endpoint) == [ListedModel("small"), ListedModel("large", 65536)]


async def test_a_wrong_key_for_the_listing_is_an_error(server: ModelServer, model: OpenAIModel) -> None:
    server.api_key = "another"
    with pytest.raises(ModelError) as caught:
        await list_models(model.endpoint)
    assert caught.value.category == "auth"


async def test_a_probe_reports_the_time_to_the_first_token_and_the_servers_abilities(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.models = [{"id": "test-model", "max_model_len": 8192}]
    server.script(says("ready"))
    result = await probe_model(model.endpoint)
    assert result.error_category is None
    assert result.listed == ListedModel("test-model", 8192)
    assert re.search(r"first token after \d+ ms, it counts tokens, its window is 8,192", result.sentence)


async def test_a_probe_reports_that_the_server_counts_no_tokens(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.script(says("ready", sends_usage=False))
    result = await probe_model(model.endpoint)
    assert "estimated" in result.sentence


async def test_a_probe_of_an_unknown_model_lists_the_known_ones(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.models = ["small", "large"]
    server.script(ERRORS["no_model"]())
    result = await probe_model(replace(model.endpoint, model_id="nope"))
    assert result.error_category == "not_found"
    assert "small, large" in result.sentence


async def test_a_server_that_lists_no_models_may_still_answer(
    server: ModelServer, model: OpenAIModel
) -> None:
    server.models = []
    server.script(says("ready"))
    assert (await probe_model(model.endpoint)).error_category is None


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (ERRORS["wrong_key"](), "key is not accepted"),
        (Behaviour(fault="html"), "/v1"),
        (Behaviour(fault="cut"), "connection broke"),
    ],
)
async def test_a_failed_probe_reports_the_reason(
    server: ModelServer, model: OpenAIModel, behaviour: Behaviour, words: str
) -> None:
    server.script(behaviour)
    result = await probe_model(model.endpoint)
    assert result.error_category is not None
    assert words in result.sentence


async def test_a_probe_of_an_unreachable_address_reports_that() -> None:
    result = await probe_model(ModelEndpoint("m", "http://127.0.0.1:9/v1"))
    assert result.error_category == "connection"
    assert "nothing can be reached" in result.sentence
