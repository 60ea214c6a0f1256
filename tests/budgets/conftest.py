"""Budgets for alice. Loaded before Django is set up: models only by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps


@pytest.fixture
def set_budget(db: None) -> Callable[..., Any]:
    """`set_budget("every_user", tokens=100)`: a budget as an operator sets it, of a day where nothing else is said."""

    def make(scope: str, period: str = "day", **fields: Any) -> Any:
        return apps.get_model("chatapp", "Budget").objects.create(scope=scope, period=period, **fields)

    return make
