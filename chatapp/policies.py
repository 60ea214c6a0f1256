"""The policy, budget and calibration in force for one conversation with one model."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from chatapp.models import Conversation, ModelConfig
from chatapp.selectors.model_configs import resolve_budget_inputs
from memory.budget import ResolvedBudget, Sizes, TokenBudget, resolve_budget
from memory.policy import ContextPolicy, EffectivePolicy, merge_policies
from memory.tokens import Calibration


@dataclass(frozen=True, slots=True)
class ContextRules:
    """How much fits and how it is kept, each with where it came from."""

    effective: EffectivePolicy
    resolved: ResolvedBudget
    calibration: Calibration

    @property
    def policy(self) -> ContextPolicy:
        return self.effective.policy

    @property
    def budget(self) -> TokenBudget:
        return self.resolved.budget


def rules_for(config: ModelConfig, conversation: Conversation | None = None) -> ContextRules:
    """Always of the model actually used. Raises memory.errors.PolicyError for a stored policy that is not valid."""
    effective = merge_policies(
        ("environment", {} if settings.ENABLE_COMPACTION else {"auto_compact": False}),
        ("model", config.context_policy),
        ("conversation", conversation.context_policy if conversation else {}),
    )
    return ContextRules(
        effective=effective,
        resolved=_resolve_budget(config, effective.policy),
        calibration=Calibration(config.token_ratio, config.token_ratio_samples),
    )


def _resolve_budget(config: ModelConfig, policy: ContextPolicy) -> ResolvedBudget:
    inputs = resolve_budget_inputs(config)
    return resolve_budget(
        model=Sizes(
            policy.context_size or inputs.model.context_size,
            policy.max_output_tokens or inputs.model.max_output_tokens,
        ),
        environment=inputs.environment,
        detected=inputs.detected,
        system_reserve=policy.system_reserve,
        input_limit=policy.max_input_tokens,
    )
