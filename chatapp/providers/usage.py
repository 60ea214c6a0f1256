"""Usage and cost of one model call before it is stored in the ledger, and the ledger as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from agents.events import Usage as UsageEvent
from agents.types import Purpose, TokenUsage
from chatapp.accounts.archive import ArchiveFile
from chatapp.accounts.models import User
from chatapp.operations.database.ids import new_id
from chatapp.providers.model_facts import price_call
from chatapp.providers.models import ModelConfig, Usage
from chatapp.runs.models import Run


@dataclass(frozen=True, slots=True)
class CallTimes:
    """Times of a model call, for the trace of its run. `request_n` is the number of its stored request."""

    started_at: datetime
    first_token_ms: int | None
    duration_ms: int
    request_n: int = 0


@dataclass(frozen=True, slots=True)
class CallUsage:
    """One model call with its cost (None = no price known), and the savings by compaction and by the provider's cache.

    With `times`, it is part of the trace of its run.
    """

    model: ModelConfig | None
    purpose: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cost: Decimal | None = None
    exact: bool = True
    kept_out_tokens: int = 0
    compaction_saved: Decimal | None = None
    cache_saved: Decimal | None = None
    times: CallTimes | None = None
    plan_step: str = ""
    """In a plan: the id of the step that made the call, or `planner` or `analyst`."""
    id: UUID = field(default_factory=new_id, compare=False)
    """The id of its row in the ledger, so that a retried write stores it once."""


def priced_call(
    model: ModelConfig, usage: TokenUsage, purpose: Purpose, *, kept_out_tokens: int = 0
) -> CallUsage:
    """Return the call at current prices. `kept_out_tokens` are priced at the call's own share of cached tokens."""
    cost = price_call(model, usage)
    # Look up the price again only if it differs.
    uncached = price_call(model, replace(usage, cached_tokens=0)) if usage.cached_tokens else cost
    cached = usage.cached_tokens * kept_out_tokens // usage.input_tokens if usage.input_tokens else 0
    kept_out = TokenUsage(kept_out_tokens, 0, cached)
    nothing = Decimal(0) if cost is not None else None
    return CallUsage(
        model=model,
        purpose=purpose,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost=cost,
        exact=usage.exact,
        kept_out_tokens=kept_out_tokens,
        compaction_saved=price_call(model, kept_out) if kept_out_tokens else nothing,
        cache_saved=uncached - cost if uncached is not None and cost is not None else None,
    )


def usage_event(run: Run, call: CallUsage, now: datetime) -> UsageEvent:
    return UsageEvent(
        conversation_id=str(run.conversation_id),
        run_id=str(run.pk),
        at=now,
        purpose=call.purpose,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cached_tokens=call.cached_tokens,
        cost=float(call.cost) if call.cost is not None else None,
        exact=call.exact,
    )


ARCHIVED_COLUMNS = (
    "created_at",
    "model_name",
    "purpose",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost",
    "conversation_id",
)


def usage_files(user: User) -> Iterator[ArchiveFile]:
    """Yield the user's model calls as CSV, oldest first, for the archive of the account."""
    yield "usage.csv", _usage_lines(user)


def _usage_lines(user: User) -> Iterator[str]:
    yield ",".join(ARCHIVED_COLUMNS) + "\n"
    rows = Usage.objects.filter(user=user).order_by("created_at", "pk")
    for row in rows.values_list(*ARCHIVED_COLUMNS).iterator(chunk_size=500):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow("" if value is None else value for value in row)
        yield line.getvalue()
