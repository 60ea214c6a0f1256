"""API operations that list the models a user may choose, and report usage and cost."""

from __future__ import annotations

from typing import Any

from ninja import Query

from chatapp.accounts.budgets.selectors import spent_by
from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.context.policies import rules_for
from chatapp.operations import clock
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, Period, UsageOfAllPeriod, UsagePeriod, answers
from chatapp.providers.schemas import Model, UsageOfAll, UsageReport, budget_shape, model_shape
from chatapp.providers.selectors import GroupBy, offered_models, usable_models, usage_by, usage_days
from chatapp.providers.usage_report import csv_response

router = Router(tags=["account"])


@router.get(
    "/models",
    auth=allow("chat", "read"),
    response=answers(ok=Page[Model]),
)
def list_models(request: ApiRequest) -> Any:
    """List the models that you may choose, the default first."""
    rows = list(usable_models(request.auth.user.pk))
    offered = offered_models(rows)
    return {
        "items": [
            # The first one is used if the user chose none, even if groups do not allow the general default.
            model_shape(row, rules_for(row).budget, is_default=number == 0, is_offered=row.pk in offered)
            for number, row in enumerate(rows)
        ],
        "next_cursor": None,
    }


@router.get("/usage", auth=allow("chat", "read"), response=answers(ok=UsageReport))
def read_usage(request: ApiRequest, period: Query[UsagePeriod]) -> Any:
    """Show your own usage, from the ledger: one row per model call, at its price at that time."""
    now = clock.now()
    budgets = [budget_shape(spent, now) for spent in spent_by(request.auth.user.pk, now)]
    return {**_report(request.auth.user, period, period.group_by), "budgets": budgets}


@router.get(
    "/admin/usage",
    auth=allow("admin"),
    response=answers(ok=UsageOfAll),
    openapi_extra={"responses": {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}},
)
def read_usage_of_all(request: ApiRequest, period: Query[UsageOfAllPeriod]) -> Any:
    """Show the usage of all users, for operators."""
    report = _report(None, period, period.group_by)
    return csv_response(report["items"], period.group_by) if period.format == "csv" else report


def _report(user: User | None, period: Period, group_by: GroupBy) -> dict[str, Any]:
    first, last = usage_days(period.start, period.end)
    items, total = usage_by(user, first=first, last=last, group_by=group_by)
    dates = {"from": first.isoformat(), "to": last.isoformat()}
    return {"items": items, "next_cursor": None, "total": total, **dates}
