"""Holds part of each budget for a model call, settles the hold to the actual usage, and releases abandoned holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from chatapp.accounts.budgets.models import Budget, BudgetHold, BudgetPeriod
from chatapp.accounts.budgets.values import WARN_AT_PERCENT, Limit, Spender
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.work_budget import delete_all
from chatapp.operations.workers.leases import is_out_of_lease

RELEASED_AT_ONCE = 500
RETENTION = timedelta(days=93)
"""How long a period is kept from its start: a month and two more. No call runs that long."""


@dataclass(frozen=True, slots=True)
class Amount:
    tokens: int
    nanos: int


@dataclass(frozen=True, slots=True)
class Hold:
    """The amount that a call holds of each of its spender's limits. `at` selects the periods."""

    amount: Amount
    at: datetime
    call_id: UUID = field(default_factory=new_id)


def hold(*, spender: Spender, held: Hold) -> None:
    """Hold the amount of every limit, or of none. A limit has room while its used and held amounts are below it.

    Raise ModelError (budget) if one is used up.
    """
    amount, now = held.amount, held.at
    # A call ends within the time limit of an answer, so the process of an older hold is gone.
    expires_at = now + timedelta(seconds=settings.ANSWER_TIME_LIMIT_S)
    with transaction.atomic():
        for limit in _in_order(spender):
            if not _take(limit, amount, now):
                # Do not begin a period that has a row: PostgreSQL may have locked the row before it found no room,
                # and `_begin_period` locks the budget before the row, so two calls could deadlock.
                has_begun = BudgetPeriod.objects.filter(pk=limit.period_id(now)).exists()
                if not has_begun and not _begin_period(limit, now):
                    continue
                if not _take(limit, amount, now):
                    # The rollback also undoes the holds on the previous limits.
                    raise limit.refusal(now)
            BudgetHold.objects.create(
                call_id=held.call_id,
                period_id=limit.period_id(now),
                tokens=amount.tokens,
                nanos=amount.nanos,
                expires_at=expires_at,
            )


def is_held(*, spender: Spender, held: Hold) -> bool:
    """Return whether the hold was committed and not settled. Always False if the spender has no limits."""
    periods = [limit.period_id(held.at) for limit in spender.limits]
    return BudgetHold.objects.filter(call_id=held.call_id, period__in=periods).exists()


def settle(*, spender: Spender, held: Hold, used: Amount, now: datetime) -> list[str]:
    """Replace what the call held by what it used, and return the warnings that are due for the first time.

    A hold that was released meanwhile is not released twice.
    """
    warnings = []
    with transaction.atomic():
        for limit in _in_order(spender):
            # Use the period of the hold: midnight may have passed since.
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
    """Release the holds of calls whose process is gone."""
    longest = timedelta(seconds=settings.ANSWER_TIME_LIMIT_S)
    rows = BudgetHold.objects.filter(is_out_of_lease(now, longest, column="expires_at"))
    for row in rows.order_by("expires_at", "pk")[:RELEASED_AT_ONCE]:
        _release(row)


def release_all() -> None:
    """Release all holds, at the start of the only process."""
    for row in BudgetHold.objects.all():
        _release(row)


def _release(row: BudgetHold) -> None:
    with transaction.atomic():
        # Release the amount only if this call deleted the row: the model call may settle at the same moment.
        if BudgetHold.objects.filter(pk=row.pk).delete()[0]:
            BudgetPeriod.objects.filter(pk=row.period_id).update(
                held_tokens=F("held_tokens") - row.tokens, held_nanos=F("held_nanos") - row.nanos
            )


@transaction.atomic
def delete_budgets(budgets: QuerySet[Budget]) -> None:
    """Delete budgets with their periods."""
    # Delete one by one, each with its periods, which is the order in which calls lock them.
    for budget in budgets.order_by("pk"):
        budget.delete()


def delete_old_periods(*, now: datetime) -> None:
    """Delete, in batches, periods that are not shown to anybody any more."""
    delete_all(BudgetPeriod.objects.filter(starts_on__lt=(now - RETENTION).date(), holds=None))


def _in_order(spender: Spender) -> list[Limit]:
    """Return the limits in lock order."""
    # Sort by budget, whose row is locked to begin a period. In the order of their periods, the rows of a shared and a
    # personal budget could come in opposite orders for two users, and deadlock.
    return sorted(spender.limits, key=lambda limit: limit.budget_id)


def _begin_period(limit: Limit, now: datetime) -> bool:
    """Create the row of the period if it is missing. Return False if the budget is gone: an operator may delete it
    during an answer, which keeps its limits."""
    # Lock the budget, so that it is not deleted before the commit.
    if not list(Budget.objects.select_for_update(no_key=True).filter(pk=limit.budget_id)):
        return False
    first = BudgetPeriod(
        pk=limit.period_id(now),
        budget_id=limit.budget_id,
        user_id=limit.holder_id,
        starts_on=limit.starts_on(now),
    )
    # Another process may have created the row meanwhile; an error would abort the transaction on PostgreSQL.
    BudgetPeriod.objects.bulk_create([first], ignore_conflicts=True)
    return True


def _take(limit: Limit, amount: Amount, now: datetime) -> bool:
    """Hold the amount in one conditional update; return False if there is no room, or no row yet."""
    room = BudgetPeriod.objects.filter(pk=limit.period_id(now))
    if limit.tokens is not None:
        # Compare in the update itself, or two concurrent calls would both take the same room.
        room = room.filter(used_tokens__lt=limit.tokens - F("held_tokens"))
    if limit.nanos is not None:
        room = room.filter(used_nanos__lt=limit.nanos - F("held_nanos"))
    held = {
        "held_tokens": F("held_tokens") + amount.tokens,
        "held_nanos": F("held_nanos") + amount.nanos,
    }
    return bool(room.update(**held))


def _is_warned_now(limit: Limit, period_id: UUID, now: datetime) -> bool:
    """Record the warning if it is due, and return whether it is the first one in the period."""
    reached = Q()
    if limit.tokens is not None:
        # Round up, to agree with `Limit.is_reached`.
        reached |= Q(used_tokens__gte=-(-limit.tokens * WARN_AT_PERCENT // 100))
    if limit.nanos is not None:
        reached |= Q(used_nanos__gte=-(-limit.nanos * WARN_AT_PERCENT // 100))
    # Only one of several calls that end together updates the row, and warns.
    rows = BudgetPeriod.objects.filter(reached, pk=period_id, warned_at=None)
    return bool(rows.update(warned_at=now))
