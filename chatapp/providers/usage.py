"""Writes and reads the ledger: one row per model call, priced at the moment of the call."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from agents.events import Usage as UsageEvent
from agents.events import UsageTotals
from agents.types import Purpose, TokenUsage
from chatapp.accounts.archive import ArchiveFile
from chatapp.accounts.models import User
from chatapp.operations.statements import insert_rows
from chatapp.providers.model_facts import price_call
from chatapp.providers.models import ModelConfig, Usage
from chatapp.runs.models import Run, RunStep


@dataclass(frozen=True, slots=True)
class CallTimes:
    """When a model call of a run was made, for the run's trace. `request_n` is the number of its stored request."""

    started_at: datetime
    first_token_ms: int | None
    duration_ms: int
    request_n: int = 0


@dataclass(frozen=True, slots=True)
class CallUsage:
    """One model call with its cost (None = no price known), and what compaction and the provider's cache saved.

    With `times` it is part of the trace of its run.
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

    def as_event(self) -> dict[str, Any]:
        return {
            "purpose": self.purpose,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "cost": float(self.cost) if self.cost is not None else None,
            "exact": self.exact,
        }


def priced_call(
    model: ModelConfig, usage: TokenUsage, purpose: Purpose, *, kept_out_tokens: int = 0
) -> CallUsage:
    """Return the call at present prices. `kept_out_tokens` are priced at the call's own share of cached tokens."""
    cost = price_call(model, usage)
    uncached = price_call(model, replace(usage, cached_tokens=0))
    cached = usage.cached_tokens * kept_out_tokens // usage.input_tokens if usage.input_tokens else 0
    return CallUsage(
        model=model,
        purpose=purpose,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost=cost,
        exact=usage.exact,
        kept_out_tokens=kept_out_tokens,
        compaction_saved=price_call(model, TokenUsage(kept_out_tokens, 0, cached)),
        cache_saved=uncached - cost if uncached is not None and cost is not None else None,
    )


def usage_row(call: CallUsage, *, user_id: Any, conversation_id: Any, run: Run | None) -> Usage:
    return Usage(
        user_id=user_id,
        conversation_id=conversation_id,
        run=run,
        model=call.model,
        model_name=call.model.name if call.model else "",
        purpose=call.purpose,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cached_tokens=call.cached_tokens,
        cost=call.cost,
        exact=call.exact,
        kept_out_tokens=call.kept_out_tokens,
        compaction_saved=call.compaction_saved,
        cache_saved=call.cache_saved,
    )


def record_calls(run: Run, calls: Sequence[CallUsage], step_count: int | None = None) -> list[RunStep]:
    """Store calls of a run, and return the steps they add to its trace. `step_count`: steps it has, if known."""
    insert_rows(
        [usage_row(call, user_id=run.user_id, conversation_id=run.conversation_id, run=run) for call in calls]
    )
    traced = [(call, call.times) for call in calls if call.times is not None]
    if traced and step_count is None:
        step_count = RunStep.objects.filter(run=run).count()
    first = (step_count or 0) + 1
    steps = [_step_row(run, n, call, times) for n, (call, times) in enumerate(traced, start=first)]
    insert_rows(steps)
    return steps


def _step_row(run: Run, n: int, call: CallUsage, times: CallTimes) -> RunStep:
    return RunStep(
        run=run,
        n=n,
        purpose=call.purpose,
        model_name=call.model.name if call.model else "",
        request_n=times.request_n,
        started_at=times.started_at,
        first_token_ms=times.first_token_ms,
        duration_ms=times.duration_ms,
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        cached_tokens=call.cached_tokens,
        exact=call.exact,
        plan_step=call.plan_step,
    )


def take_over_background_calls(run: Run) -> None:
    """Count background calls of the conversation since its last answer to this run."""
    Usage.objects.filter(conversation_id=run.conversation_id, run=None).update(run=run)


def unrecorded_calls(run: Run, calls: Sequence[CallUsage]) -> list[CallUsage]:
    """Return the calls whose step is not stored yet; a write that is repeated finds some of them stored."""
    numbers = RunStep.objects.filter(run=run, request_n__gt=0).values_list("request_n", flat=True)
    recorded = set(numbers) if calls else set()
    return [call for call in calls if call.times is None or call.times.request_n not in recorded]


def usage_event(run: Run, call: CallUsage, now: datetime) -> UsageEvent:
    return UsageEvent(conversation_id=str(run.conversation_id), run_id=str(run.pk), at=now, **call.as_event())


def record_background_calls(user: User, conversation_id: Any, calls: Sequence[CallUsage]) -> None:
    """Store calls outside a run; the next answer of the conversation shows them."""
    Usage.objects.bulk_create(
        usage_row(call, user_id=user.pk, conversation_id=conversation_id, run=None) for call in calls
    )


def totals_of_run(run: Run) -> UsageTotals:
    """Return sums of the run's calls. Input and output include compaction; `compaction_tokens` is its share."""
    rows = list(Usage.objects.filter(run=run))
    costs = [row.cost for row in rows if row.cost is not None]
    return UsageTotals(
        input_tokens=sum(row.input_tokens for row in rows),
        output_tokens=sum(row.output_tokens for row in rows),
        cached_tokens=sum(row.cached_tokens for row in rows),
        compaction_tokens=sum(
            row.input_tokens + row.output_tokens for row in rows if row.purpose == "compaction"
        ),
        cost=float(sum(costs)) if costs else None,
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
