"""Models and usage as the API answers them, and these answers made of rows."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from pydantic import Field

from chatapp.operations.http.schemas import Page, Shape
from chatapp.providers.models import ModelConfig
from memory.budget import TokenBudget


class Model(Shape):
    id: str
    name: str
    kind: str
    is_default: bool
    context_size: int
    max_output_tokens: int


def model_shape(row: ModelConfig, budget: TokenBudget, *, is_default: bool) -> dict[str, Any]:
    """Return the row as the API answers it. `budget` is the one in effect."""
    return {
        "id": str(row.pk),
        "name": row.name,
        "kind": row.kind,
        "is_default": is_default,
        "context_size": budget.context_size,
        "max_output_tokens": budget.max_output_tokens,
    }


class UsageRow(Shape):
    key: str = Field(description="The day, model, purpose or conversation id, by `group_by`.")
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
        description="What `cached_tokens` would have cost more at the price of fresh ones."
    )


def usage_shape(key: str, sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return sums of the ledger as the API answers them. A cost is None where no price was known."""
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


class UsageReport(Page[UsageRow]):
    total: UsageRow
