"""Reads the budgets that apply to a user, and their usage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from chatapp.accounts.budgets.models import Budget, BudgetPeriod
from chatapp.accounts.budgets.values import NANOS, Limit, Spender
from chatapp.accounts.group_access.selectors import groups_of
from chatapp.operations.caching.editions import cached

Scope = Budget.Scope
WHOSE = {Scope.DEPLOYMENT: "The shared", Scope.EVERY_USER: "Your", Scope.USER: "Your"}


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage of a limit in the current period, without running calls."""

    limit: Limit
    tokens: int
    nanos: int

    def has_reached(self, percent: int) -> bool:
        """Return whether this percentage of the tokens or of the money is used."""
        return self.limit.is_reached(self.tokens, self.nanos, percent)


def spender_of(user_id: UUID) -> Spender:
    """Return the spender of the user's model calls. Read nothing about the user if there are no budgets."""
    budgets = cached("budgets", lambda: list(Budget.objects.select_related("group")))
    return Spender(user_id, tuple(_limits(budgets, user_id))) if budgets else Spender(user_id)


def spent_by(user_id: UUID, now: datetime) -> list[Spent]:
    """Return the usage of each of the user's limits, including shared ones."""
    limits = spender_of(user_id).limits
    # The keys are calculated, so one query reads all rows.
    rows = BudgetPeriod.objects.in_bulk([limit.period_id(now) for limit in limits]) if limits else {}
    found = ((limit, rows.get(limit.period_id(now))) for limit in limits)
    return [Spent(limit, row.used_tokens if row else 0, row.used_nanos if row else 0) for limit, row in found]


def _limits(budgets: Iterable[Budget], user_id: UUID) -> Iterable[Limit]:
    own = {budget.period for budget in budgets if budget.user_id == user_id}
    # Read the user's groups only if a group has a budget.
    groups = groups_of(user_id) if any(budget.scope == Scope.GROUP for budget in budgets) else frozenset()
    for budget in budgets:
        match budget.scope:
            case Scope.GROUP if budget.group_id in groups and budget.group:
                yield limit_of(budget, f"The {budget.group.name} group's", None)
            case Scope.DEPLOYMENT:
                yield limit_of(budget, WHOSE[Scope.DEPLOYMENT], None)
            case Scope.USER if budget.user_id == user_id:
                yield limit_of(budget, WHOSE[Scope.USER], user_id)
            case Scope.EVERY_USER if budget.period not in own:
                yield limit_of(budget, WHOSE[Scope.EVERY_USER], user_id)


def limit_of(budget: Budget, whose: str, holder_id: UUID | None) -> Limit:
    nanos = None if budget.money is None else int(budget.money * NANOS)
    return Limit(budget.pk, whose, holder_id, budget.period, budget.tokens, nanos)
