"""One service per module, with a scripted model as its provider and OpenAI's own client connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.fixtures.processes import ServiceStarter
from tests.servers.openai_server import ModelServer
from tests.servers.people import ALICE, GUESTS
from tests.servers.service import Service


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture(scope="module")
def service(start_shared: ServiceStarter, model: ModelServer) -> Service:
    return start_shared(
        OPENAI_BASE_URL=model.base_url,
        LLM_MODEL="test-model",
        EMBEDDINGS_BASE_URL=model.base_url,
        EMBEDDINGS_MODEL="test-vectors",
        MESSAGES_PER_MINUTE="0",
        SSE_HEARTBEAT_S="600",
    )


@pytest.fixture(autouse=True)
def own_script(model: ModelServer) -> Iterator[None]:
    yield
    model.clear()


def client_of(service: Service, email: str = ALICE, **options: Any) -> openai.OpenAI:
    """Return the official client, configured only with our address and key."""
    return openai.OpenAI(base_url=f"{service.url}/v1", api_key=service.tokens[email], **options)


@pytest.fixture
def client(service: Service) -> openai.OpenAI:
    return client_of(service)


@pytest.fixture
def guest(service: Service) -> str:
    """Return the address of a user whom no other test uses."""
    return service.newcomer(GUESTS)
