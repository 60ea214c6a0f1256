"""A fixture for budgets. Loaded before Django is set up, so it gets models by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps


@pytest.fixture
def set_budget(db: None) -> Callable[..., Any]:
    """Return a function that creates a budget, daily by default, e.g. `set_budget("every_user", tokens=100)`."""

    def make(scope: str, period: str = "day", **fields: Any) -> Any:
        return apps.get_model("chatapp", "Budget").objects.create(scope=scope, period=period, **fields)

    return make
