"""What the API answers, for its description and as a check. `mapping` makes the values; more fields may be added."""

from __future__ import annotations

from pydantic import Field

from chatapp.operations.http.schemas import Page, Shape


class Model(Shape):
    id: str
    name: str
    kind: str
    is_default: bool
    context_size: int
    max_output_tokens: int


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


class UsageReport(Page[UsageRow]):
    total: UsageRow
