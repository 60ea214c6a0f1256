"""Races between two processes, simulated in one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from chatapp.accounts.budgets import actions
from chatapp.accounts.budgets.actions import Amount, Hold, hold
from chatapp.accounts.budgets.models import Budget, BudgetPeriod
from chatapp.accounts.budgets.selectors import limit_of
from chatapp.accounts.budgets.values import Spender
from chatapp.accounts.models import User
from chatapp.files.object_store import DiskStore
from chatapp.operations import clock


def test_the_first_two_calls_of_a_period_both_succeed(alice: User, monkeypatch: pytest.MonkeyPatch):
    """Another process may create the row of the period after the update found none. The call must not be refused as if
    the budget were exhausted (PostgreSQL; at each midnight UTC and on the first of each month)."""
    budget = Budget.objects.create(scope="deployment", period="day", tokens=1_000_000)
    limit, now = limit_of(budget, "The shared", None), clock.now()
    take = actions._take
    calls: list[Any] = []

    def then_another_process_makes_the_row(*of: Any) -> bool:
        has_room = take(*of)
        if not calls:
            BudgetPeriod.objects.create(
                pk=limit.period_id(now), budget_id=budget.pk, starts_on=limit.starts_on(now)
            )
        calls.append(of)
        return has_room

    monkeypatch.setattr(actions, "_take", then_another_process_makes_the_row)
    hold(spender=Spender(alice.pk, (limit,)), held=Hold(Amount(10, 0), now))


def test_walking_the_store_continues_while_a_conversation_is_deleted(tmp_path: Path):
    """A request may delete a folder while the hourly sweep walks all of them."""
    store = DiskStore(tmp_path)
    for number in range(20):
        store.write(f"{number}/a.txt", b"text")
    found = store.walk()
    first = next(found).path.partition("/")[0]
    for number in {str(number) for number in range(20)} - {first, "0", "1"}:
        shutil.rmtree(tmp_path / number)
    list(found)
