"""Every write to agents: by hand, and from profiles as they are written in YAML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from agents.profiles import ADDRESSES, AgentProfile, Brain
from chatapp.actions.hook_actions import check_hooks
from chatapp.actions.model_configs import free_name, key_differs, save_model_config
from chatapp.models import Agent, ModelConfig


@dataclass(frozen=True, slots=True)
class LoadedAgent:
    agent: Agent
    is_new: bool
    summary_model: ModelConfig | None


def load_agents(*, profiles: Sequence[AgentProfile]) -> list[LoadedAgent]:
    """All or none. What is known by its name is brought up to date; models are known by address and model.

    Raises InvalidInput for a hook that names an action nobody knows.
    """
    for profile in profiles:
        check_hooks(profile.hooks, "execution.hooks")
    with transaction.atomic():
        return [_load(profile) for profile in profiles]


def _load(profile: AgentProfile) -> LoadedAgent:
    # The one that answers first: where there was only the Demo model, it becomes the default.
    model = _model_for(profile.brain)
    summary_model = _model_for(profile.summary_brain) if profile.summary_brain else None
    policy = dict(profile.context_policy)
    if summary_model is not None:
        policy["summary_model"] = str(summary_model.pk)
    values: dict[str, Any] = {
        "model": model,
        "mode": profile.mode,
        "system_prompt": profile.system_prompt,
        "greeting": profile.greeting,
        "temperature": profile.brain.temperature,
        "timeout_s": profile.brain.timeout or profile.timeout_s,
        "context_policy": policy,
        "hooks": [hook.model_dump(mode="json", exclude_none=True) for hook in profile.hooks],
    }
    # A profile names no tools, so its agent begins without any; what an operator gives it stays.
    agent, is_new = Agent.objects.update_or_create(
        name=profile.name, owner=None, defaults=values, create_defaults=values | {"tools": []}
    )
    return LoadedAgent(agent, is_new, summary_model)


def _model_for(brain: Brain) -> ModelConfig:
    """The row for this address and model, made where there is none. A key that is given is stored, encrypted."""
    rows = ModelConfig.objects.filter(kind=ModelConfig.Kind.OPENAI, model_id=brain.model)
    found = next((row for row in rows if _address_of(row) == brain.base_url), None)
    if found is None:
        found = ModelConfig(name=free_name(brain.model), model_id=brain.model, base_url=brain.base_url)
        return save_model_config(config=found, api_key=brain.api_key)
    if brain.api_key and not found.from_environment and key_differs(found, brain.api_key):
        save_model_config(config=found, api_key=brain.api_key)
    return found


def _address_of(config: ModelConfig) -> str:
    return config.base_url.rstrip("/") or ADDRESSES["openai"]


def save_agent(*, agent: Agent) -> None:
    """As edited by an operator."""
    agent.save()
