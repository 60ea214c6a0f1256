"""A model server on a real socket, and a model that calls it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agents.chat_models.openai_model import OpenAIModel
from agents.types import ModelEndpoint
from tests.servers.openai_server import ModelServer


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def model(server: ModelServer) -> OpenAIModel:
    return OpenAIModel(ModelEndpoint("test-model", server.base_url, "sk-test"))
