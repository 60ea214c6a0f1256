"""One limit of one user, its periods, and its messages to the user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID, uuid5

from agents.errors import ModelError
from chatapp.accounts.budgets.models import Budget
from chatapp.operations.clock import iso_time

NANOS = 10**9
WARN_AT_PERCENT = 80

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Limit:
    """One budget as it applies to one user. `holder_id` is the user, None if the budget is shared; `nanos` are
    billionths of a dollar. None for `tokens` or `nanos` means no limit."""

    budget_id: UUID
    whose: str
    holder_id: UUID | None
    period: str
    tokens: int | None
    nanos: int | None

    def starts_on(self, now: datetime) -> date:
        today = now.astimezone(UTC).date()
        return today if self.period == Budget.Period.DAY else today.replace(day=1)

    def ends_at(self, now: datetime) -> datetime:
        """Return the end of the period that contains `now`, when the budget starts afresh."""
        start = self.starts_on(now)
        # 32 days after the first of any month is a day of the next one.
        after = start + timedelta(days=1 if self.period == Budget.Period.DAY else 32)
        end = after if self.period == Budget.Period.DAY else after.replace(day=1)
        return datetime.combine(end, time.min, UTC)

    def period_id(self, now: datetime) -> UUID:
        """Return the key of the period's row, the same in every process."""
        # Calculate the key, so that two processes that begin a period create the same row.
        return uuid5(self.budget_id, f"{self.holder_id or ''} {self.starts_on(now)}")

    def is_reached(self, tokens: int, nanos: int, percent: int) -> bool:
        """Return whether the tokens or the money reach this percentage of their limit."""
        limits = ((self.tokens, tokens), (self.nanos, nanos))
        return any(limit is not None and used * 100 >= limit * percent for limit, used in limits)

    @property
    def amount(self) -> str:
        parts = []
        if self.tokens is not None:
            parts.append(f"{self.tokens:,} tokens")
        if self.nanos is not None:
            parts.append(f"${Decimal(self.nanos) / NANOS:,.2f}")
        each = "{} a day" if self.period == Budget.Period.DAY else "{} a month"
        return each.format(" or ".join(parts))

    def refusal(self, now: datetime) -> ModelError:
        """Return the error of a refused call. The text after the semicolon applies to stored messages only."""
        ends_at = self.ends_at(now)
        return ModelError(
            "budget",
            f"{self.whose} budget of {self.amount} is used up until {_written(ends_at)}; your message is stored. "
            "Press Retry then.",
            detail=f"resets at {iso_time(ends_at)}",
            retry_after_s=(ends_at - now).total_seconds(),
        )

    def warning(self, now: datetime) -> str:
        whose = self.whose[0].lower() + self.whose[1:]
        return (
            f"{WARN_AT_PERCENT} % of {whose} budget of {self.amount} is used. "
            f"It is renewed on {_written(self.ends_at(now))}."
        )


@dataclass(frozen=True, slots=True)
class Spender:
    """Who pays for model calls: the limits that apply, mostly none. `notify` gets the warning once per period."""

    user_id: UUID
    limits: tuple[Limit, ...] = ()
    notify: Notify | None = None


def seconds_to_reset(detail: str, now: datetime) -> int:
    """Return the seconds until the moment in the `detail` of a refusal, at least 1."""
    reset = datetime.fromisoformat(detail.rpartition(" ")[2])
    return max(1, round((reset - now).total_seconds()))


def _written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
