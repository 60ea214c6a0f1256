"""Holds a part of each budget for a model call, settles it by what the call took, and releases what was left held."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from chatapp.accounts.budgets.models import Budget, BudgetHold, BudgetPeriod
from chatapp.accounts.budgets.values import WARN_AT_PERCENT, Limit, Spender
from chatapp.operations.ids import new_id
from chatapp.operations.leases import is_out_of_lease
from chatapp.operations.work_budget import PIECE, TO_THE_END, delete_some

RELEASED_AT_ONCE = 500
KEPT = timedelta(days=93)
"""After the beginning of a period: of a month, two more. No call runs so long."""


@dataclass(frozen=True, slots=True)
class Amount:
    tokens: int
    nanos: int


@dataclass(frozen=True, slots=True)
class Hold:
    """What a call holds of each of its spender's limits. `at` says of which periods."""

    amount: Amount
    at: datetime
    call_id: UUID = field(default_factory=new_id)


def hold(*, spender: Spender, held: Hold) -> None:
    """Hold the amount of every limit, or of none. A limit has room as long as what is used and held is below it.

    Raise ModelError (budget) where one is used up.
    """
    amount, now = held.amount, held.at
    # A call ends within the time of an answer: a hold that is older has lost its process.
    expires_at = now + timedelta(seconds=settings.ANSWER_TIME_LIMIT_S)
    with transaction.atomic():
        for limit in _in_order(spender):
            if not _take(limit, amount, now):
                # Where there is a row, PostgreSQL may have locked it before it found no room: who begins the period
                # locks the budget first, and the two would wait for each other.
                if not _has_begun(limit, now) and not _begin_period(limit, now):
                    continue
                if not _take(limit, amount, now):
                    # What was held of the limits before it is rolled back with the transaction.
                    raise limit.refusal(now)
            BudgetHold.objects.create(
                call_id=held.call_id,
                period_id=limit.period_id(now),
                tokens=amount.tokens,
                nanos=amount.nanos,
                expires_at=expires_at,
            )


def is_held(*, spender: Spender, held: Hold) -> bool:
    """Return whether `hold` was committed and nothing has settled it. Without limits nothing is held: False."""
    periods = [limit.period_id(held.at) for limit in spender.limits]
    return BudgetHold.objects.filter(call_id=held.call_id, period__in=periods).exists()


def settle(*, spender: Spender, held: Hold, used: Amount, now: datetime) -> list[str]:
    """Count what the call took in the place of what it held, and return the warnings that are due for the first time.

    A hold that was released meanwhile is not given back twice.
    """
    warnings = []
    with transaction.atomic():
        for limit in _in_order(spender):
            # Of the period in which it was held: midnight may have passed since.
            period_id = limit.period_id(held.at)
            gave_back, _ = BudgetHold.objects.filter(call_id=held.call_id, period=period_id).delete()
            given = held.amount if gave_back else Amount(0, 0)
            BudgetPeriod.objects.filter(pk=period_id).update(
                used_tokens=F("used_tokens") + used.tokens,
                used_nanos=F("used_nanos") + used.nanos,
                held_tokens=F("held_tokens") - given.tokens,
                held_nanos=F("held_nanos") - given.nanos,
            )
            if spender.notify is not None and _is_warned_now(limit, period_id, now):
                warnings.append(limit.warning(held.at))
    return warnings


def release_expired(now: datetime) -> None:
    """Give back what calls held whose process is gone."""
    longest = timedelta(seconds=settings.ANSWER_TIME_LIMIT_S)
    rows = BudgetHold.objects.filter(is_out_of_lease(now, longest, column="expires_at"))
    for row in rows.order_by("expires_at", "pk")[:RELEASED_AT_ONCE]:
        _release(row)


def release_all() -> None:
    """Give back all that is held, at the start of the only process."""
    for row in BudgetHold.objects.all():
        _release(row)


def _release(row: BudgetHold) -> None:
    with transaction.atomic():
        # Only who deletes the row gives back: the call itself may settle at the same moment.
        if BudgetHold.objects.filter(pk=row.pk).delete()[0]:
            BudgetPeriod.objects.filter(pk=row.period_id).update(
                held_tokens=F("held_tokens") - row.tokens, held_nanos=F("held_nanos") - row.nanos
            )


@transaction.atomic
def delete_budgets(budgets: QuerySet[Budget]) -> None:
    """Delete budgets, with what was spent of them."""
    # One after the other, each with its periods: in the order in which calls lock them.
    for budget in budgets.order_by("pk"):
        budget.delete()


def delete_old_periods(*, now: datetime) -> None:
    """Delete, in pieces, what was spent in periods that nobody is shown any more."""
    old = BudgetPeriod.objects.filter(starts_on__lt=(now - KEPT).date(), holds=None)
    TO_THE_END.work(lambda: delete_some(old, PIECE.start()))


def _in_order(spender: Spender) -> list[Limit]:
    """Return the limits in the order in which everybody locks their rows."""
    # By the budget, whose row is locked to begin a period: the keys of the periods of two users lie differently beside
    # those of a budget that they share, and the two would wait for each other.
    return sorted(spender.limits, key=lambda limit: limit.budget_id)


def _has_begun(limit: Limit, now: datetime) -> bool:
    return BudgetPeriod.objects.filter(pk=limit.period_id(now)).exists()


def _begin_period(limit: Limit, now: datetime) -> bool:
    """Make the row of the period where there is none yet; return False where the budget is gone: an operator may delete
    one while an answer runs, which keeps its limits."""
    # Locked, so that it is not deleted before the commit.
    if not list(Budget.objects.select_for_update(no_key=True).filter(pk=limit.budget_id)):
        return False
    first = BudgetPeriod(
        pk=limit.period_id(now),
        budget_id=limit.budget_id,
        user_id=limit.holder_id,
        starts_on=limit.starts_on(now),
    )
    # Another process may have made it in between; an error would end the transaction on PostgreSQL.
    BudgetPeriod.objects.bulk_create([first], ignore_conflicts=True)
    return True


def _take(limit: Limit, amount: Amount, now: datetime) -> bool:
    """Hold the amount in one conditional update; return False where there is no room, or no row yet."""
    room = BudgetPeriod.objects.filter(pk=limit.period_id(now))
    if limit.tokens is not None:
        # Compared in the update itself: two calls that read first would both find the same room.
        room = room.filter(used_tokens__lt=limit.tokens - F("held_tokens"))
    if limit.nanos is not None:
        room = room.filter(used_nanos__lt=limit.nanos - F("held_nanos"))
    held = {
        "held_tokens": F("held_tokens") + amount.tokens,
        "held_nanos": F("held_nanos") + amount.nanos,
    }
    return bool(room.update(**held))


def _is_warned_now(limit: Limit, period_id: UUID, now: datetime) -> bool:
    """Note that the user was warned, and return whether this is the first time in the period."""
    reached = Q()
    if limit.tokens is not None:
        # Rounded up, so that it is reached where `Limit.is_reached` says so.
        reached |= Q(used_tokens__gte=-(-limit.tokens * WARN_AT_PERCENT // 100))
    if limit.nanos is not None:
        reached |= Q(used_nanos__gte=-(-limit.nanos * WARN_AT_PERCENT // 100))
    # The update decides who warns: of calls that end together, one.
    rows = BudgetPeriod.objects.filter(reached, pk=period_id, warned_at=None)
    return bool(rows.update(warned_at=now))
