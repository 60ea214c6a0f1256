"""The policy, budget, calibration and hooks in force for one conversation with one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from agents.loop.hooks import EffectiveHooks, Hook, compacts_itself, join_hooks, read_hooks, with_auto_compact
from chatapp.agent_presets.models import Agent
from chatapp.agent_presets.selectors import deployment_hooks, usable_agent
from chatapp.conversations.models import Conversation
from chatapp.operations import clock
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import model_of, named_window, resolve_budget_inputs
from memory.budget import ResolvedBudget, Sizes, TokenBudget, resolve_budget
from memory.tokens import Calibration
from memory.window.policy import (
    ContextPolicy,
    EffectivePolicy,
    check_user_fields,
    check_written,
    merge_policies,
    within_bounds,
)


@dataclass(frozen=True, slots=True)
class ContextRules:
    """Policy, budget, calibration and hooks, each with its origin. The hooks include the built-in one."""

    effective: EffectivePolicy
    resolved: ResolvedBudget
    calibration: Calibration
    effective_hooks: EffectiveHooks

    @property
    def policy(self) -> ContextPolicy:
        return self.effective.policy

    @property
    def hooks(self) -> tuple[Hook, ...]:
        return self.effective_hooks.hooks

    @property
    def hooks_decide_compaction(self) -> bool:
        """Return whether declared hooks decide when to compact."""
        return self.effective.origins["auto_compact"] == "hooks"

    @property
    def summarises(self) -> bool:
        """Return whether messages that leave the context are compacted automatically."""
        return self.policy.auto_compact or self.hooks_decide_compaction

    @property
    def budget(self) -> TokenBudget:
        return self.resolved.budget

    @property
    def most(self) -> ContextPolicy:
        """Return the policy as an upper bound, with the actual sizes if it leaves them to the model."""
        sizes = {
            "context_size": self.budget.context_size,
            "max_output_tokens": self.budget.max_output_tokens,
        }
        return self.policy.model_copy(update=sizes)


def agent_of(conversation: Conversation | None) -> Agent | None:
    """Return the conversation's agent; None if it was switched off or is not available to its user any more."""
    return usable_agent(conversation.agent, conversation.owner_id) if conversation else None


def rules_for(
    config: ModelConfig,
    conversation: Conversation | None = None,
    agent: Agent | None = None,
    *,
    asked_in: Conversation | None = None,
) -> ContextRules:
    """Return the rules in force for the model actually used.

    `asked_in` is the conversation that a model works for without answering in it: its provider may have named a smaller
    window there. Raise memory.errors.PolicyError if a stored policy is invalid.
    """
    agent = agent or agent_of(conversation)
    # Without either, the caller only needs the window of the model.
    has_turns = conversation is not None or agent is not None
    declared = _allowed(declared_hooks(conversation, agent)) if has_turns else EffectiveHooks()
    # Later layers win, field by field.
    effective = merge_policies(
        ("environment", settings.CONTEXT_POLICY),
        ("model", config.context_policy),
        *_layers_of_turns(config, conversation, agent),
        *_switches(declared.hooks),
    )
    return ContextRules(
        effective=effective,
        resolved=_resolve_budget(
            config, effective, named_window(config, asked_in or conversation, clock.now())
        ),
        calibration=Calibration(config.token_ratio, config.token_ratio_samples),
        effective_hooks=with_auto_compact(declared, effective.policy),
    )


def _layers_of_turns(
    config: ModelConfig, conversation: Conversation | None, agent: Agent | None
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the layers of agent and conversation. Limit users' settings to the operator's current bounds for this
    model and agent, which may differ from those at the time they were set."""
    layers = [
        ("agent", agent.context_policy if agent else {}),
        ("conversation", conversation.context_policy if conversation else {}),
    ]
    users = [origin for origin, fields in layers if fields and is_set_by_user(origin, conversation, agent)]
    if not users:
        return layers
    most = rules_for(config, agent=_of_operator(agent)).most
    return [(origin, within_bounds(fields, most) if origin in users else fields) for origin, fields in layers]


def is_set_by_user(level: str, conversation: Conversation | None, agent: Agent | None) -> bool:
    """Return whether a policy or hook of this level is a user's own, which the operator's bounds limit. Never true in
    an operator's own conversations."""
    if conversation is not None and conversation.user.is_superuser:
        return False
    return level == "conversation" or (level == "agent" and agent is not None and agent.owner_id is not None)


def _of_operator(agent: Agent | None) -> Agent | None:
    """Return the agent if its policy is a bound; None for an agent made by a user, whose policy is the user's own."""
    return agent if agent is not None and agent.owner_id is None else None


def check_own_policy(
    conversation: Conversation, policy: Mapping[str, Any], *, is_operator: bool = False
) -> None:
    """Check that the user may set this policy for this conversation, in its current or intended state.

    Raise memory.errors.PolicyError. Operators may set any valid policy.
    """
    check_written("conversation", policy)
    if is_operator or not policy:
        return
    of_operator = _of_operator(agent_of(conversation))
    check_user_fields(policy, rules_for(model_of(conversation), agent=of_operator).most)


def declared_hooks(conversation: Conversation | None, agent: Agent | None = None) -> EffectiveHooks:
    """Return the hooks of environment, deployment, agent and conversation. Raise memory.errors.PolicyError."""
    agent = agent or agent_of(conversation)
    return join_hooks(
        ("environment", read_hooks(settings.HOOKS, "environment")),
        ("deployment", read_hooks(deployment_hooks(), "deployment")),
        ("agent", read_hooks(agent.hooks, "agent") if agent else ()),
        ("conversation", read_hooks(conversation.hooks, "conversation") if conversation else ()),
    )


def _allowed(declared: EffectiveHooks) -> EffectiveHooks:
    if settings.ENABLE_COMPACTION:
        return declared
    return replace(declared, hooks=tuple(hook for hook in declared.hooks if not compacts_itself([hook])))


def _switches(declared: Sequence[Hook]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the layers with the highest priority: the deployment's switch, and hooks that decide when to compact."""
    if not settings.ENABLE_COMPACTION:
        return [("environment", {"auto_compact": False})]
    return [("hooks", {"auto_compact": False})] if compacts_itself(declared) else []


def _resolve_budget(config: ModelConfig, effective: EffectivePolicy, named: int | None) -> ResolvedBudget:
    """Return the budget. The window that an operator entered for this model overrides the deployment's. None may exceed
    the window that the provider has named in a refusal."""
    inputs = resolve_budget_inputs(config)
    resolved = resolve_budget(
        model=_first_said(_sizes_of(effective, of_deployment=False), inputs.model),
        environment=_first_said(_sizes_of(effective, of_deployment=True), inputs.environment),
        detected=inputs.detected,
        system_reserve=effective.policy.system_reserve,
        input_limit=effective.policy.max_input_tokens,
    )
    if named is None or named >= resolved.budget.context_size:
        return resolved
    # Otherwise the reserve for the answer might take all of the much smaller window.
    output = min(resolved.budget.max_output_tokens, max(1, named // 2))
    budget = replace(resolved.budget, context_size=named, max_output_tokens=output)
    return replace(resolved, budget=budget, context_size_from="detected")


def _sizes_of(effective: EffectivePolicy, *, of_deployment: bool) -> Sizes:
    said = {
        name: getattr(effective.policy, name)
        for name in ("context_size", "max_output_tokens")
        if (effective.origins[name] == "environment") == of_deployment
    }
    return Sizes(**said)


def _first_said(first: Sizes, second: Sizes) -> Sizes:
    return Sizes(
        first.context_size or second.context_size, first.max_output_tokens or second.max_output_tokens
    )
