"""API schemas of models, usage and budgets, and the functions that build responses from rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from pydantic import Field

from chatapp.accounts.budgets.selectors import Spent
from chatapp.accounts.budgets.values import NANOS, WARN_AT_PERCENT
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Moment, Page, Shape
from chatapp.providers.models import ModelConfig
from memory.budget import TokenBudget


class Model(Shape):
    id: str
    name: str
    kind: str
    is_default: bool
    is_offered: bool = Field(
        description="Whether the page offers it: the demo and the fast models of others only as the default."
    )
    context_size: int
    max_output_tokens: int


def model_shape(
    row: ModelConfig, budget: TokenBudget, *, is_default: bool, is_offered: bool
) -> dict[str, Any]:
    """Return the model as an API response. `budget` is the one in effect."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "kind": row.kind,
        "is_default": is_default,
        "is_offered": is_offered,
        "context_size": budget.context_size,
        "max_output_tokens": budget.max_output_tokens,
    }


class UsageRow(Shape):
    key: str = Field(
        description="The day, model, agent, purpose, conversation id, user or group, by `group_by`; empty: none."
    )
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None = Field(description="In US dollars; null where no price is known.")
    kept_out_tokens: int = Field(
        description="What compaction kept out of requests: all that was said, as far as the model's input budget holds "
        "it, less what was sent."
    )
    compaction_saved: float | None = Field(
        description="The price of `kept_out_tokens`, at the share of cached tokens each call had. What the summaries "
        "cost is the cost of the purpose `compaction`."
    )
    cache_saved: float | None = Field(
        description="How much more `cached_tokens` would have cost at the uncached price."
    )


def usage_shape(key: str, sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return sums of the ledger as an API response. A cost is None if no price was known."""
    return {
        "key": key,
        "calls": sums["calls"],
        "input_tokens": sums["total_input"],
        "output_tokens": sums["total_output"],
        "cached_tokens": sums["total_cached"],
        "cost": _money(sums["total_cost"]),
        "kept_out_tokens": sums["total_kept_out"],
        "compaction_saved": _money(sums["total_compaction_saved"]),
        "cache_saved": _money(sums["total_cache_saved"]),
    }


def _money(total: Decimal | None) -> float | None:
    return None if total is None else float(total)


class BudgetState(Shape):
    whose: str = Field(description="`Your`, `The shared` or that of a group.")
    period: str = Field(description="`day` or `month`, UTC.")
    resets_at: Moment
    tokens: int | None = Field(description="Input and output; null: any number.")
    used_tokens: int
    cost: float | None = Field(description="In US dollars; null: any amount.")
    used_cost: float
    is_warned: bool = Field(description="Whether 80 % of it is used.")
    is_used_up: bool = Field(description="Whether model calls are refused until `resets_at`.")


def budget_shape(spent: Spent, now: datetime) -> dict[str, Any]:
    """Return one of the caller's budgets as an API response."""
    limit = spent.limit
    return {
        "whose": limit.whose,
        "period": limit.period,
        "resets_at": iso_time(limit.ends_at(now)),
        "tokens": limit.tokens,
        "used_tokens": spent.tokens,
        "cost": None if limit.nanos is None else limit.nanos / NANOS,
        "used_cost": spent.nanos / NANOS,
        "is_warned": spent.has_reached(WARN_AT_PERCENT),
        "is_used_up": spent.has_reached(100),
    }


class UsageOfAll(Page[UsageRow]):
    total: UsageRow


class UsageReport(UsageOfAll):
    budgets: list[BudgetState] = Field(
        description="The limits that apply to you now, regardless of `from` and `to`."
    )
