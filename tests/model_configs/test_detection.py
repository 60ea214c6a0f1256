"""Windows that no operator entered are queried in the background at start."""

from __future__ import annotations

import pytest

from chatapp.providers.actions import save_model_config
from chatapp.providers.detection import detect_in_background
from chatapp.providers.models import ModelConfig
from tests.model_configs.ollama_server import ollama_server
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)


def start_with(base_url: str, **fields: object) -> ModelConfig:
    config = ModelConfig(name="Ours", model_id="test-model", base_url=base_url)
    for name, value in fields.items():
        setattr(config, name, value)
    save_model_config(config=config, api_key="sk-1")
    detect_in_background().join(timeout=120)
    config.refresh_from_db()
    return config


@pytest.mark.mechanism("digitorn.detection")
def test_the_window_that_the_provider_lists_is_stored() -> None:
    with ModelServer(
        models=[{"id": "other", "max_model_len": 1}, {"id": "test-model", "max_model_len": 16_384}]
    ) as server:
        assert start_with(server.base_url).detected_context_size == 16_384
        assert {request.kind for request in server.requests} == {"models"}


def test_an_operators_ollama_is_queried_for_the_window_of_the_running_model() -> None:
    answers = {
        "/api/version": {"version": "0.30.1"},
        "/v1/models": {"data": [{"id": "test-model"}]},
        "/api/ps": {"models": [{"name": "test-model", "context_length": 8_192}]},
    }
    with ollama_server(answers) as url:
        assert start_with(url).detected_context_size == 8_192


def test_a_server_is_not_queried_if_an_operator_entered_the_window() -> None:
    with ModelServer() as server:
        assert start_with(server.base_url, context_size=9_000).detected_context_size == 0
        assert server.requests == []


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1"])
def test_an_unreachable_address_changes_nothing(address: str) -> None:
    assert start_with(address).detected_context_size == 0
