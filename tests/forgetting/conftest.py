"""Fixtures for a service with scripted models. Loaded before Django is set up, so it must not import Django models."""

from __future__ import annotations

from tests.api.conftest import alice_client, alice_program, model, model_server, pytest_pyfunc_call

__all__ = ["alice_client", "alice_program", "model", "model_server", "pytest_pyfunc_call"]
