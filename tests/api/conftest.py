"""Clients of alice and charlie, and a scripted model. pytest loads this before Django is set up: get models by name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.apps import apps
from django.test import Client

from tests.servers.openai_server import ModelServer

if TYPE_CHECKING:
    from chatapp.accounts.models import User
    from chatapp.providers.models import ModelConfig
    from tests.api.program import Program

HERE = Path(__file__).parent
Clients = Callable[..., Client]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run async tests on an event loop, as the server does. `async_to_sync` would run all requests in one thread."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    )
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test a database with real commits, because runs, streams and waiting requests use their own threads."""
    ours = {path for path in {item.path for item in items} if HERE in path.parents}
    for item in items:
        if item.path in ours and "start_service" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.django_db(transaction=True))


@pytest.fixture
def alice_client(api_client: Clients, alice: User) -> Client:
    return api_client(alice)


@pytest.fixture
def charlie_client(api_client: Clients, charlie: User) -> Client:
    return api_client(charlie)


@pytest.fixture
def alice_program(alice_client: Client) -> Program:
    """Return a program with the token of `alice_client`, for streaming, waiting and concurrent requests."""
    return _same_token(alice_client)


@pytest.fixture
def charlie_program(charlie_client: Client) -> Program:
    return _same_token(charlie_client)


def _same_token(client: Client) -> Program:
    program = import_module("tests.api.program").Program
    made: Program = program({"authorization": client.defaults["HTTP_AUTHORIZATION"]})
    return made


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model(model_server: ModelServer) -> ModelConfig:
    """Return the default model, which the scripted server runs."""
    config: ModelConfig = apps.get_model("chatapp", "ModelConfig").objects.create(
        name="Test",
        model_id="test-model",
        base_url=model_server.base_url,
        context_size=32_000,
        max_output_tokens=4_000,
        is_default=True,
    )
    return config
