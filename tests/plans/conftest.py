"""API clients, and two scripted models on one socket: a main model, and a fast model with a small window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from django.apps import apps

from tests.api.conftest import (
    alice_client,
    alice_program,
    charlie_client,
    charlie_program,
    pytest_pyfunc_call,
)
from tests.plans.planned_server import PlannedServer, planned_server
from tests.servers.openai_server import ModelServer

if TYPE_CHECKING:
    from chatapp.providers.models import ModelConfig

__all__ = ["alice_client", "alice_program", "charlie_client", "charlie_program", "pytest_pyfunc_call"]


@pytest.fixture
def planned() -> Iterator[PlannedServer]:
    with ModelServer(models=("main-model", "fast-model")) as server:
        yield planned_server(server)


@pytest.fixture
def models(planned: PlannedServer, transactional_db: None) -> tuple[ModelConfig, ModelConfig]:
    """Return (main, fast). The main model is the default."""
    make = apps.get_model("chatapp", "ModelConfig").objects.create
    url = planned.server.base_url
    fast = make(name="Fast", model_id="fast-model", base_url=url, context_size=8_000, max_output_tokens=1_000)
    main = make(
        name="Main",
        model_id="main-model",
        base_url=url,
        context_size=64_000,
        max_output_tokens=8_000,
        fast_model=fast,
        is_default=True,
    )
    return main, fast
