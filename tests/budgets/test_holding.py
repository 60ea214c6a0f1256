"""Holds on budgets and their settlement are exact, even with concurrent calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Group
from django.db import OperationalError
from django.http import HttpRequest

from agents.errors import ModelError
from agents.types import ModelRequest
from chatapp.accounts.budgets import metering
from chatapp.accounts.budgets.actions import RETENTION, Amount, Hold, hold, release_expired, settle
from chatapp.accounts.budgets.admin import BudgetAdmin
from chatapp.accounts.budgets.models import Budget, BudgetHold, BudgetPeriod
from chatapp.accounts.budgets.selectors import spender_of
from chatapp.accounts.budgets.values import NANOS, Spender
from chatapp.accounts.models import User
from chatapp.operations import clock
from chatapp.operations.database.ids import new_id
from chatapp.operations.database.threads import in_database, in_writer
from chatapp.operations.tasks import clean_up, sweep
from chatapp.providers.chat_models import chat_model_for
from memory.tokens import text_message
from tests.blocking import check_no_wait, check_order, lock_at_once
from tests.context_engine.chatting import make_model, on_a_loop
from tests.servers.openai_server import ModelServer

pytestmark = pytest.mark.django_db(transaction=True)

SetBudget = Callable[..., Any]
ONE = Amount(100, 1_000)


@pytest.fixture(autouse=True)
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the clock, because another period begins at midnight."""
    now = clock.now().replace(hour=12)
    monkeypatch.setattr(clock, "now", lambda: now)


def hold_of(user: User, amount: Amount = ONE, days_ahead: int = 0) -> Hold | None:
    """Hold an amount and return the hold; None if the budget is exhausted."""
    held = Hold(amount, clock.now() + timedelta(days=days_ahead))
    try:
        hold(spender=spender_of(user.pk), held=held)
    except ModelError:
        return None
    return held


def spend(user: User, amount: Amount, warned: list[str] | None = None) -> bool:
    """Hold and use up an amount, and return whether there was room."""
    held = hold_of(user, amount)
    if held is not None:
        spender = spender_of(user.pk)
        notify = warned.append if warned is not None else None
        payer = Spender(spender.user_id, spender.limits, notify)
        found = settle(spender=payer, held=held, used=amount, now=clock.now())
        if warned is not None:
            warned.extend(found)
    return held is not None


@pytest.mark.mechanism("ours.budget-exact")
@on_a_loop
async def test_a_budget_for_50_calls_admits_50_of_200_concurrent_calls(
    alice: User, bob: User, set_budget: SetBudget
) -> None:
    await in_database(set_budget)("deployment", tokens=50 * ONE.tokens)
    await in_database(set_budget)("every_user", "month", tokens=1_000_000)
    calls = [in_writer(hold_of)(alice if number % 2 else bob) for number in range(200)]
    held = [found for found in await asyncio.gather(*calls) if found is not None]
    assert len(held) == 50
    spender = await in_database(spender_of)(alice.pk)
    [shared] = [limit for limit in spender.limits if limit.holder_id is None]
    row = await BudgetPeriod.objects.aget(pk=shared.period_id(clock.now()))
    assert (row.held_tokens, row.used_tokens) == (5_000, 0)


@on_a_loop
async def test_users_who_begin_a_day_concurrently_do_not_deadlock(
    alice: User, bob: User, charlie: User, set_budget: SetBudget
) -> None:
    await in_database(set_budget)("deployment", tokens=10_000)
    await in_database(set_budget)("every_user", tokens=10_000)
    # The keys of the periods, and so their order, differ from day to day.
    for day in range(40):
        calls = [in_writer(hold_of)(user, days_ahead=day) for user in (alice, bob, charlie)]
        assert None not in await asyncio.gather(*calls)


@pytest.mark.postgres
def test_a_call_on_an_exhausted_budget_is_refused_without_locking_the_budget(
    alice: User, set_budget: SetBudget
) -> None:
    """A refused call may hold the row of the period, for which a call that has locked the budget waits."""
    budget = set_budget("deployment", tokens=ONE.tokens)
    assert hold_of(alice)
    refused: list[Hold | None] = []
    check_no_wait(
        lambda: refused.append(hold_of(alice)), lambda: lock_at_once(Budget.objects.filter(pk=budget.pk))
    )
    assert refused == [None]


def test_settling_replaces_the_held_amount_by_the_used_amount(alice: User, set_budget: SetBudget) -> None:
    set_budget("every_user", tokens=150)
    held = hold_of(alice)
    assert held is not None
    settle(spender=spender_of(alice.pk), held=held, used=Amount(10, 7), now=clock.now())
    row = BudgetPeriod.objects.get()
    assert (row.used_tokens, row.used_nanos, row.held_tokens, row.held_nanos) == (10, 7, 0, 0)
    assert hold_of(alice) is not None
    assert hold_of(alice) is not None, "110 of 150 are used or held"
    assert hold_of(alice) is None


def test_money_is_held_like_tokens(alice: User, set_budget: SetBudget) -> None:
    set_budget("every_user", money="0.01")
    assert spend(alice, Amount(1_000_000, NANOS // 100 - 1))
    assert spend(alice, Amount(1, 1))
    assert hold_of(alice) is None


def test_the_sweep_releases_the_hold_of_a_dead_process_only_once(
    alice: User, set_budget: SetBudget, settings: Any
) -> None:
    set_budget("every_user", tokens=100)
    held = hold_of(alice)
    assert held is not None
    assert hold_of(alice) is None
    sweep()
    assert hold_of(alice) is None, "it may still be alive"
    BudgetHold.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    sweep()
    assert hold_of(alice) is not None
    settle(spender=spender_of(alice.pk), held=held, used=Amount(30, 0), now=clock.now())
    row = BudgetPeriod.objects.get()
    assert (row.used_tokens, row.held_tokens) == (30, 100)


@on_a_loop
async def test_a_call_cancelled_while_it_holds_releases_its_hold(
    alice: User, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, may_go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def hold_slowly(**given: Any) -> object:
        began.set()
        may_go_on.wait()
        try:
            return hold(**given)
        finally:
            ended.set()

    await in_database(set_budget)("every_user", tokens=1_000)
    monkeypatch.setattr(metering, "hold", hold_slowly)
    with ModelServer() as server:
        config = await in_database(make_model)(server)
        model = chat_model_for(config, await in_database(spender_of)(alice.pk))
        request = ModelRequest((text_message("user", "Hello."),), 100)
        asking = asyncio.ensure_future(anext(model.stream(request)))
        await asyncio.to_thread(began.wait)
        asking.cancel()
        may_go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.to_thread(ended.wait)
        assert not server.requests
    row = await BudgetPeriod.objects.aget()
    assert (row.held_tokens, row.used_tokens) == (0, 0)
    assert not await BudgetHold.objects.aexists()


@on_a_loop
async def test_a_call_holds_once_although_the_response_to_the_commit_was_lost(
    alice: User, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[object] = []

    def hold_and_break_off(**given: Any) -> object:
        tries.append(hold(**given))
        if len(tries) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        return tries[-1]

    await in_database(set_budget)("every_user", tokens=1_000)
    monkeypatch.setattr(metering, "hold", hold_and_break_off)
    async with metering.held_while(await in_database(spender_of)(alice.pk), ONE):
        assert (await BudgetPeriod.objects.aget()).held_tokens == ONE.tokens
    row = await BudgetPeriod.objects.aget()
    assert (row.held_tokens, row.used_tokens) == (0, ONE.tokens)


@pytest.mark.parametrize("was_committed", [True, False])
@on_a_loop
async def test_a_call_counts_once_although_settling_it_failed(
    alice: User, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch, was_committed: bool
) -> None:
    tries: list[object] = []

    def settle_and_break_off(**given: Any) -> object:
        tries.append(given)
        if len(tries) == 1:
            if was_committed:
                settle(**given)
            raise OperationalError("server closed the connection unexpectedly")
        return settle(**given)

    await in_database(set_budget)("every_user", tokens=1_000)
    monkeypatch.setattr(metering, "settle", settle_and_break_off)
    async with metering.held_while(await in_database(spender_of)(alice.pk), ONE):
        pass
    row = await BudgetPeriod.objects.aget()
    assert (row.held_tokens, row.used_tokens) == (0, ONE.tokens)


@pytest.mark.parametrize("was_used", [True, False])
def test_a_budget_deleted_during_an_answer_no_longer_applies_to_it(
    alice: User, set_budget: SetBudget, was_used: bool
) -> None:
    set_budget("every_user", "month", tokens=100)
    deleted = set_budget("every_user", tokens=100)
    # An answer keeps its limits for all its calls.
    spender = spender_of(alice.pk)
    if was_used:
        hold(spender=spender, held=Hold(Amount(10, 0), clock.now()))
    deleted.delete()
    held = Hold(Amount(10, 0), clock.now())
    hold(spender=spender, held=held)
    settle(spender=spender, held=held, used=Amount(30, 0), now=clock.now())
    assert [row.used_tokens for row in BudgetPeriod.objects.all()] == [30]


def test_a_new_day_has_a_new_daily_budget_and_the_same_monthly_one(
    alice: User, set_budget: SetBudget
) -> None:
    set_budget("every_user", tokens=100)
    set_budget("every_user", "month", tokens=1_000)
    spender, today = spender_of(alice.pk), datetime(2026, 11, 15, 12, tzinfo=UTC)
    hold(spender=spender, held=Hold(ONE, today))
    with pytest.raises(ModelError):
        hold(spender=spender, held=Hold(ONE, today))
    hold(spender=spender, held=Hold(ONE, today + timedelta(days=1)))
    assert set(BudgetPeriod.objects.values_list("starts_on", "held_tokens")) == {
        (date(2026, 11, 1), 200),
        (date(2026, 11, 15), 100),
        (date(2026, 11, 16), 100),
    }


def test_a_personal_budget_replaces_the_budget_of_every_user(
    alice: User, bob: User, set_budget: SetBudget
) -> None:
    set_budget("every_user", tokens=100)
    set_budget("user", user=alice, tokens=300)
    assert [spend(alice, ONE) for _ in range(4)] == [True, True, True, False]
    assert [spend(bob, ONE) for _ in range(2)] == [True, False]


def test_a_group_budget_is_shared_by_its_members_and_ignores_other_users(
    alice: User, bob: User, charlie: User, set_budget: SetBudget
) -> None:
    group = Group.objects.create(name="Research")
    group.user_set.add(alice, bob)  # type: ignore[attr-defined]
    set_budget("group", group=group, tokens=200)
    assert [spend(alice, ONE), spend(bob, ONE)] == [True, True]
    assert [spend(alice, ONE), spend(bob, ONE), spend(charlie, ONE)] == [False, False, True]


def test_limits_show_the_new_name_of_a_renamed_group(alice: User, set_budget: SetBudget) -> None:
    group = Group.objects.create(name="Research")
    group.user_set.add(alice)  # type: ignore[attr-defined]
    set_budget("group", group=group, tokens=200)
    assert [limit.whose for limit in spender_of(alice.pk).limits] == ["The Research group's"]
    group.name = "Archive"
    group.save()
    assert [limit.whose for limit in spender_of(alice.pk).limits] == ["The Archive group's"]


def test_a_call_refused_by_one_budget_holds_nothing_of_the_others(alice: User, set_budget: SetBudget) -> None:
    set_budget("every_user", tokens=100)
    set_budget("every_user", "month", tokens=1_000)
    set_budget("deployment", tokens=1_000)
    assert spend(alice, ONE)
    assert not spend(alice, ONE)
    assert set(BudgetPeriod.objects.values_list("held_tokens", "used_tokens")) == {(0, 100)}
    assert not BudgetHold.objects.exists()


@pytest.mark.mechanism("ours.budget-warning")
def test_at_80_percent_the_user_is_warned_once_in_the_period(alice: User, set_budget: SetBudget) -> None:
    set_budget("every_user", tokens=1_000)
    warned: list[str] = []
    assert spend(alice, Amount(799, 0), warned)
    assert warned == []
    assert spend(alice, Amount(1, 0), warned)
    assert spend(alice, Amount(1, 0), warned)
    assert len(warned) == 1
    assert warned[0].startswith("80 % of your budget of 1,000 tokens a day is used. It is renewed on ")


def test_a_warning_that_cannot_be_delivered_is_given_later(alice: User, set_budget: SetBudget) -> None:
    set_budget("every_user", tokens=1_000)
    assert spend(alice, Amount(900, 0))
    warned: list[str] = []
    assert spend(alice, Amount(1, 0), warned)
    assert len(warned) == 1


@pytest.mark.postgres
def test_deleting_budgets_locks_them_in_the_same_order_as_calls(set_budget: SetBudget) -> None:
    first, second = set_budget("deployment", tokens=100), set_budget("deployment", "month", tokens=100)
    for budget in (second, first):  # a scan finds the row of the second budget first
        BudgetPeriod.objects.create(pk=new_id(), budget=budget, starts_on=clock.now().date())
    request, page = HttpRequest(), BudgetAdmin(Budget, AdminSite())
    check_order(
        lambda: page.delete_queryset(request, Budget.objects.order_by("-pk")),
        BudgetPeriod.objects.filter(budget=first),
        BudgetPeriod.objects.filter(budget=second),
    )
    assert not Budget.objects.exists()


def test_the_clean_up_deletes_periods_that_ended_months_ago(alice: User, set_budget: SetBudget) -> None:
    set_budget("every_user", tokens=1_000)
    set_budget("every_user", "month", tokens=10_000)
    for days_ago in (0, RETENTION.days, RETENTION.days + 1, RETENTION.days + 40):
        held = hold_of(alice, days_ahead=-days_ago)
        assert held is not None
        settle(spender=spender_of(alice.pk), held=held, used=ONE, now=clock.now())
    kept_from = (clock.now() - RETENTION).date()
    assert BudgetPeriod.objects.filter(starts_on__lt=kept_from).count() >= 3
    clean_up()
    left = BudgetPeriod.objects.values_list("starts_on", flat=True)
    assert min(left) == kept_from
    assert max(left) == clock.now().date()


def test_a_hold_made_while_the_clock_was_ahead_is_released(alice: User, set_budget: SetBudget) -> None:
    """The process is gone and the clock was set back, so the hold would expire too late."""
    set_budget("deployment", tokens=1_000)
    assert hold_of(alice)
    release_expired(clock.now())
    assert BudgetPeriod.objects.get().held_tokens == ONE.tokens
    BudgetHold.objects.update(expires_at=clock.now() + timedelta(hours=1, minutes=30))
    release_expired(clock.now())
    assert BudgetPeriod.objects.get().held_tokens == 0
