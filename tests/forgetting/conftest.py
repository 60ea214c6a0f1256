"""A service with scripted models, and alice who talks to it. Loaded before Django is set up: models only by name."""

from __future__ import annotations

from tests.api.conftest import alice_client, alice_program, model, model_server, pytest_pyfunc_call

__all__ = ["alice_client", "alice_program", "model", "model_server", "pytest_pyfunc_call"]
