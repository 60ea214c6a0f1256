"""The policy of a context: each setting with its default, range and the layer that set it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from memory.bounds import (
    MAX_CHARS,
    MAX_ID_CHARS,
    MAX_KEPT_MESSAGES,
    MAX_SUMMARY_TOKENS,
    MAX_TEMPLATE_CHARS,
    MAX_TIMEOUT_S,
    MAX_TURNS,
    MIN_SUMMARY_TOKENS,
    Temperature,
    Tokens,
)
from memory.budget import DEFAULT_SYSTEM_RESERVE, TokenBudget
from memory.errors import PolicyError
from memory.strategies.protocol import Strategy, SummaryForm
from memory.strategies.registry import StrategyName, strategy_named
from memory.strict_types import strict_checks

TRIGGER_MAX = 0.9
"""Above this the summariser's own call would have no room (AgentScope)."""
PROFILE_SHARE = 8


class ContextPolicy(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    context_size: Tokens = Field(default=0, description="Window in tokens; 0 = the model's own.")
    max_output_tokens: Tokens = Field(default=0, description="Most tokens of an answer; 0 = the model's own.")
    system_reserve: Tokens = Field(
        default=DEFAULT_SYSTEM_RESERVE, description="Tokens kept for system prompt and tools."
    )
    max_input_tokens: Tokens = Field(
        default=0, description="Most input tokens per request; 0 = limited only by the window."
    )
    strategy: StrategyName = Field(
        default="checkpoint", description="How messages that leave the context are treated."
    )
    trigger: float = Field(
        default=0.75, gt=0, le=1, description="Share of the budget at which the view is compacted."
    )
    soft_trigger: float = Field(
        default=0.60,
        gt=0,
        le=1,
        description="Share at which the next summary is prepared; at most four fifths of `trigger`.",
    )
    keep_recent: int = Field(
        default=10,
        ge=0,
        le=MAX_KEPT_MESSAGES,
        description="Number of newest messages that are not summarised.",
    )
    reserve_ratio: float = Field(
        default=0.10,
        ge=0,
        le=0.5,
        description="Share of the window kept for the newest messages; at most a third of the free room.",
    )
    max_turns: int = Field(
        default=0, ge=0, le=MAX_TURNS, description="Turns in context; 0 = no limit (20 for `turns`)."
    )
    max_steps: int = Field(default=15, ge=1, le=1_000, description="Tool steps in one turn.")
    summary_model: str = Field(
        default="", max_length=MAX_ID_CHARS, description="Model that summarises; empty = the fast model."
    )
    summary_max_tokens: int = Field(
        default=1_024, ge=MIN_SUMMARY_TOKENS, le=MAX_SUMMARY_TOKENS, description="Most tokens of a summary."
    )
    summary_temperature: Temperature | None = Field(
        default=None, description="Temperature of the summary model; empty = the model's own."
    )
    summary_timeout_s: float = Field(
        default=120, gt=0, le=MAX_TIMEOUT_S, description="Seconds one call of the summary model may take."
    )
    compact_prompt: str = Field(
        default="", max_length=MAX_TEMPLATE_CHARS, description="Replaces the built-in summary prompt."
    )
    summary_template: str = Field(
        default="",
        max_length=MAX_TEMPLATE_CHARS,
        description="Replaces the built-in layout of a structured summary.",
    )
    summary_schema: dict[str, Any] | None = Field(
        default=None, description="Replaces the five fields of a structured summary."
    )
    tool_result_limit: Tokens = Field(
        default=0, description="Tokens of one tool result; 0 = 0.15 of the window, at most 25,000."
    )
    old_result_char_limit: int = Field(
        default=20_000,
        ge=200,
        le=MAX_CHARS,
        description="Most characters of a tool result from an earlier turn.",
    )
    message_char_limit: int = Field(
        default=50_000, ge=200, le=MAX_CHARS, description="Characters of any one message."
    )
    cooldown_turns: int = Field(
        default=2, ge=0, le=1_000, description="Turns before the next automatic compaction."
    )
    auto_compact: bool = Field(default=True, description="Compact without being asked.")
    recall_budget: Tokens = Field(
        default=8_000,
        description="Tokens kept free for recalled text; also the limit of recall in an inspection with its own "
        "budget.",
    )
    recall_tokens: Tokens = Field(
        default=3_000,
        description="Most tokens recalled for one question; they stay in the context with its turn.",
    )
    profile_budget: int = Field(
        default=1_000,
        ge=0,
        le=100_000,
        description="Most tokens of the profile; 0 = the profile is not sent.",
    )
    wait_for_summary: bool = Field(
        default=False, description="Wait for the summary instead of cutting at once."
    )

    @field_validator("trigger")
    @classmethod
    def cap_trigger(cls, value: float) -> float:
        return min(value, TRIGGER_MAX)

    @property
    def behaviour(self) -> Strategy:
        """Return the strategy that `strategy` names."""
        return strategy_named(self.strategy)

    @property
    def summary_form(self) -> SummaryForm:
        return SummaryForm(
            self.summary_max_tokens, self.compact_prompt, self.summary_template, self.summary_schema
        )

    @property
    def soft_ratio(self) -> float:
        """Return the soft trigger, always below the hard one."""
        return min(self.soft_trigger, 0.8 * self.trigger)

    @property
    def turn_limit(self) -> int:
        """Return the most turns in context; 0 means no limit."""
        return self.max_turns or self.behaviour.default_max_turns

    @property
    def full_turns(self) -> int:
        """Return how many of the newest turns keep their tool chains (CowAgent's restore rule)."""
        return max(3, self.max_turns // 6)

    @property
    def has_summary(self) -> bool:
        return self.behaviour.writes_summaries and self.auto_compact

    @property
    def is_inline(self) -> bool:
        """Return whether an answer waits for the summary it needs, instead of cutting at once."""
        return self.has_summary and (self.behaviour.waits_for_summary or self.wait_for_summary)

    @property
    def summarises_steps(self) -> bool:
        """Return whether a tool loop over its budget waits for a model's summary of its older steps."""
        return self.is_inline or (self.has_summary and self.behaviour.summarises_steps)

    @property
    def prepares_ahead(self) -> bool:
        """Return whether the soft trigger prepares the next summary. Inline ones are written when needed."""
        return self.has_summary and not self.is_inline and self.behaviour.prepares_ahead

    def result_limit(self, budget: TokenBudget) -> int:
        """Return the most tokens of one tool result before the rest is offloaded."""
        return self.tool_result_limit or min(budget.context_size * 15 // 100, 25_000)

    def profile_limit(self, budget: TokenBudget) -> int:
        """Return the most tokens of the profile in context: in a small window only its share."""
        return min(self.profile_budget, budget.input_tokens // PROFILE_SHARE)

    def tail_tokens(self, budget: TokenBudget) -> int:
        """Return the tokens of the newest history that a compaction keeps, even beyond `keep_recent` messages."""
        window = min(budget.context_size, budget.input_limit or budget.context_size)
        return int(window * self.reserve_ratio)


DEFAULT_POLICY = ContextPolicy()

ALIASES: Mapping[str, str] = {
    "max_tokens": "context_size",
    "output_reserved": "max_output_tokens",
    "compression_trigger": "trigger",
    "trigger_ratio": "trigger",
    "compression_prompt": "compact_prompt",
    "agent_max_context_tokens": "max_input_tokens",
    "agent_max_context_turns": "max_turns",
    "agent_max_steps": "max_steps",
}
"""Names from published designs, accepted wherever a policy is written."""
INHERITED_WHEN_ZERO = frozenset({"context_size", "max_output_tokens"})
"""For these, 0 means "the model's own", so the layer below decides."""


@dataclass(frozen=True, slots=True)
class EffectivePolicy:
    policy: ContextPolicy
    origins: Mapping[str, str]
    """The layer that set each field; "default" if none did."""


def merge_policies(*layers: tuple[str, Mapping[str, object]]) -> EffectivePolicy:
    """Merge (name, fields) layers, of which a later one wins field by field. None, or a window of 0, means "not set".

    Raise PolicyError with the layer for an unknown name or a value out of range.
    """
    values: dict[str, object] = {}
    origins = dict.fromkeys(ContextPolicy.model_fields, "default")
    for origin, fields in layers:
        # A field's own name comes last and overrides its aliases, in whatever order they are written.
        for given, value in sorted(fields.items(), key=lambda field: (field[0] not in ALIASES, field[0])):
            name = ALIASES.get(given, given)
            if name not in ContextPolicy.model_fields:
                raise PolicyError(given, origin, "unknown setting")
            if value is not None and not (value == 0 and name in INHERITED_WHEN_ZERO):
                values[name], origins[name] = value, origin
    return EffectivePolicy(_validated(values, origins), origins)


def _validated(values: dict[str, object], origins: Mapping[str, str]) -> ContextPolicy:
    try:
        return ContextPolicy.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0]) if first["loc"] else "policy"
        raise PolicyError(field, origins.get(field, "policy"), first["msg"]) from error


def check_written(origin: str, fields: Mapping[str, object]) -> ContextPolicy:
    """Return the policy of one layer as a user writes it. Text is no valid number, though stored values may be text.
    Raise PolicyError, for the same field whatever the order of the fields."""
    for given, value in sorted(fields.items()):
        check = strict_checks(ContextPolicy).get(ALIASES.get(given, given))
        if check and value is not None and (kind := check(value)):
            raise PolicyError(given, origin, KINDS[kind])
        merge_policies((origin, {given: value}))  # alone, because the field's own name overrides an alias
    return merge_policies((origin, fields)).policy


def drop_overridden_aliases(fields: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without names that are unchanged since `before`, if another name of the same field has a new
    value: the newest value wins."""
    # None means "not set", and renews nothing.
    renewed = {
        ALIASES.get(name, name) for name, value in fields.items() if value not in (None, before.get(name))
    }
    return {
        name: value
        for name, value in fields.items()
        if ALIASES.get(name, name) not in renewed or before.get(name) != value
    }


KINDS = {
    bool: "Input should be a valid boolean",
    int: "Input should be a valid integer",
    float: "Input should be a valid number",
}
_USER_FIELD_NAMES = """
    strategy system_reserve trigger soft_trigger keep_recent reserve_ratio max_turns max_steps
    max_input_tokens max_output_tokens context_size summary_max_tokens tool_result_limit
    old_result_char_limit message_char_limit cooldown_turns auto_compact recall_budget recall_tokens
    profile_budget wait_for_summary
"""
USER_FIELDS = frozenset(_USER_FIELD_NAMES.split())
"""Fields that a user may set for one conversation; the rest belong to the operator."""
_COST_NAMES = """
    context_size max_output_tokens max_input_tokens summary_max_tokens recall_budget recall_tokens
    profile_budget max_steps
"""
_COSTS = frozenset(_COST_NAMES.split())
_OFF_AT_ZERO = ("recall_budget", "recall_tokens", "profile_budget")
"""For these, zero means off; for the other costs, no limit."""


def check_user_fields(
    fields: Mapping[str, object], operator: ContextPolicy, origin: str = "conversation"
) -> None:
    """Raise PolicyError for fields that a user may not set, and for values above the operator's own policy.

    `operator` is the policy without the user's layer.
    """
    wanted = check_written(origin, fields)
    for given, value in sorted(fields.items()):
        name = ALIASES.get(given, given)
        if name not in USER_FIELDS:
            raise PolicyError(given, origin, "only the operator can set this")
        if value is not None and _costs_more(name, getattr(wanted, name), operator):
            raise PolicyError(given, origin, f"the operator allows at most {getattr(operator, name):,}")


def within_bounds(fields: Mapping[str, object], operator: ContextPolicy) -> Mapping[str, object]:
    """Return a user's stored fields without those above the operator's own policy, which may have changed since they
    were checked."""
    wanted = merge_policies(("conversation", fields)).policy
    names = {given: ALIASES.get(given, given) for given in fields}
    return {
        given: value
        for given, value in fields.items()
        if not _costs_more(names[given], getattr(wanted, names[given]), operator)
    }


def _costs_more(name: str, asked: float, operator: ContextPolicy) -> bool:
    limit = getattr(operator, name)
    # Zero means no limit, which is more than any.
    lifts_limit = name == "max_input_tokens" and asked == 0
    is_limited = name in _COSTS and (limit > 0 or name in _OFF_AT_ZERO)
    return is_limited and (limit < asked or lifts_limit)
