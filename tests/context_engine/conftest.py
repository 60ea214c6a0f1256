"""Fixtures: a service with scripted models, and alice as its user. Loaded before Django, so it imports no models."""

from __future__ import annotations

from tests.api.conftest import alice_client, alice_program, model, model_server, pytest_pyfunc_call

__all__ = ["alice_client", "alice_program", "model", "model_server", "pytest_pyfunc_call"]
