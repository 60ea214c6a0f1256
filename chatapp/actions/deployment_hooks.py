"""Every write to the hooks of the whole deployment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from agents.hooks import Hook
from chatapp.models import DeploymentHook


def save_deployment_hook(*, hook: DeploymentHook) -> None:
    """As edited by an operator, checked."""
    hook.hook_id = hook.declaration["id"]
    hook.save()


def store_deployment_hooks(*, hooks: Sequence[Hook]) -> None:
    """What is known by its id is brought up to date; one that an operator switched off stays so."""
    with transaction.atomic():
        for hook in hooks:
            declaration: dict[str, Any] = hook.model_dump(mode="json", exclude_none=True)
            DeploymentHook.objects.update_or_create(hook_id=hook.id, defaults={"declaration": declaration})
