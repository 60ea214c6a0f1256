"""The admin page of budgets, with their current usage."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from chatapp.accounts.budgets.actions import delete_budgets
from chatapp.accounts.budgets.models import Budget, BudgetPeriod
from chatapp.accounts.budgets.selectors import limit_of
from chatapp.accounts.budgets.values import NANOS
from chatapp.operations import clock
from chatapp.operations.admin.pages import SentAtOnce


@admin.register(Budget)
class BudgetAdmin(SentAtOnce):
    list_display = ("__str__", "scope", "period", "tokens", "money", "used")
    list_filter = ("scope", "period")
    list_select_related = ("group", "user")
    search_fields = ("user__email", "group__name")
    fields = ("scope", "group", "user", "period", "tokens", "money")
    raw_id_fields = ("user",)

    @admin.display(description=_("used now"))
    def used(self, budget: Budget) -> str:
        """Return the usage in the current period; for a budget of each user, the highest of any user."""
        starts_on = limit_of(budget, "", None).starts_on(clock.now())
        rows = BudgetPeriod.objects.filter(budget=budget, starts_on=starts_on)
        most = rows.aggregate(tokens=Max("used_tokens"), nanos=Max("used_nanos"))
        used = {"tokens": f"{most['tokens'] or 0:,}", "money": f"${(most['nanos'] or 0) / NANOS:,.2f}"}
        if budget.scope == Budget.Scope.EVERY_USER:
            return gettext("%(tokens)s tokens, %(money)s at most") % used
        return gettext("%(tokens)s tokens, %(money)s") % used

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Budget]) -> None:
        delete_budgets(queryset)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Keep scope and period of an existing budget, because its usage was counted for them."""
        return ("scope", "group", "user", "period") if obj else ()
