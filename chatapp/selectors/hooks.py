"""Hooks of the whole deployment."""

from __future__ import annotations

from typing import Any

from chatapp.models import DeploymentHook


def deployment_hooks() -> list[dict[str, Any]]:
    """As they were declared, the oldest first; those that are switched off are not among them."""
    return list(DeploymentHook.objects.filter(enabled=True).values_list("declaration", flat=True))
