"""The models a user may choose, and what the user's model calls took and cost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from ninja import Query, Router

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.context.policies import rules_for
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.schemas import Page, UsagePeriod, answers
from chatapp.providers.schemas import Model, UsageReport, model_shape
from chatapp.providers.selectors import usage_by, visible_models

router = Router(tags=["account"])

USAGE_DAYS = 30
MAX_USAGE_DAYS = 3_660


@router.get(
    "/models",
    auth=allow("chat", "read"),
    response=answers(ok=Page[Model]),
)
async def list_models(request: ApiRequest) -> Any:
    """What you may choose, the default first."""
    return {"items": await sync_to_async(_models)(request.auth.user), "next_cursor": None}


def _models(user: User) -> list[dict[str, Any]]:
    rows = enumerate(visible_models(user))
    return [model_shape(row, rules_for(row).budget, is_default=number == 0) for number, row in rows]


@router.get("/usage", auth=allow("chat", "read"), response=answers(ok=UsageReport))
async def read_usage(request: ApiRequest, period: Query[UsagePeriod]) -> Any:
    """Your own, from the ledger: one row per model call, at the price of that moment."""
    return await sync_to_async(_usage)(request.auth.user, period)


def _usage(user: User, period: UsagePeriod) -> dict[str, Any]:
    last = period.end or clock.now().date()
    first = period.start or last - timedelta(days=USAGE_DAYS)
    if first > last or (last - first).days > MAX_USAGE_DAYS:
        details = [{"field": "from", "message": "must be before `to`, by ten years at most"}]
        raise InvalidInput("`from` must be before `to`, by ten years at most.", details=details)
    items, total = usage_by(user, first=first, last=last, group_by=period.group_by)
    dates = {"from": first.isoformat(), "to": last.isoformat()}
    return {"items": items, "next_cursor": None, "total": total, **dates}
