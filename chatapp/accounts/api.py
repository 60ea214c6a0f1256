"""The caller: who it is, what it may use, what it spent, its tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from asgiref.sync import sync_to_async
from ninja import Query, Router, Status

from chatapp.accounts import schemas
from chatapp.accounts.actions import create_token, delete_token
from chatapp.accounts.callers import ApiRequest, Caller, allow, client_address
from chatapp.accounts.deletion import delete_own_account
from chatapp.accounts.models import ApiToken, User
from chatapp.accounts.rate_limits import check_failed_sign_in
from chatapp.accounts.schemas import AccountDeletion, MeChanges, NewToken
from chatapp.accounts.selectors import accessible_token, visible_tokens
from chatapp.context.policies import rules_for
from chatapp.long_term.actions.settings import update_settings
from chatapp.operations import clock
from chatapp.operations.errors import Forbidden, InvalidInput
from chatapp.operations.http import schemas as http_schemas
from chatapp.operations.http.schemas import UsagePeriod
from chatapp.providers import schemas as provider_schemas
from chatapp.providers.models import ModelConfig
from chatapp.providers.selectors import usage_rows, visible_models

router = Router(tags=["account"])

USAGE_DAYS = 30
MAX_USAGE_DAYS = 3_660


@router.get(
    "/me", auth=allow("chat", "read", "memory", "admin"), response=http_schemas.answers(ok=schemas.Me)
)
async def read_me(request: ApiRequest) -> Any:
    return _me(request.auth)


@router.patch("/me", auth=allow("chat"), response=http_schemas.answers(ok=schemas.Me))
async def change_me(request: ApiRequest, changes: MeChanges) -> Any:
    """Only what is sent is changed. The time zone says where your days begin."""
    if changes.model_fields_set:
        await sync_to_async(update_settings)(user=request.auth.user, changes=changes.sent())
    return _me(request.auth)


@router.delete("/me", auth=allow("chat"), response=http_schemas.answers(403, 409))
async def delete_me(request: ApiRequest, sure: AccountDeletion = AccountDeletion()) -> Any:
    """The account with everything in it: conversations, memory, files, tokens, usage. It cannot be undone.

    A page sends the `password`; a token needs the scopes `chat` and `memory`.
    """
    caller = request.auth
    if not {"chat", "memory"} <= caller.scopes:
        raise Forbidden("This needs a token with the scopes chat and memory.", code="insufficient_scope")
    try:
        await sync_to_async(delete_own_account)(
            caller.user, sure.password, needs_password=caller.token_id is None, now=clock.now()
        )
    except Forbidden:
        await check_failed_sign_in(client_address(request))
        raise
    if caller.session_key is not None:
        await sync_to_async(request.session.flush)()
    return Status(204, None)


def _me(caller: Caller) -> dict[str, Any]:
    user = caller.user
    return {
        "id": str(user.pk),
        "email": user.email,
        "name": user.name,
        "time_zone": user.time_zone,
        "is_admin": user.is_superuser,
        "scopes": sorted(caller.scopes),
        "created_at": _iso(user.date_joined),
    }


def _iso(moment: Any) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


@router.get(
    "/models",
    auth=allow("chat", "read"),
    response=http_schemas.answers(ok=http_schemas.Page[provider_schemas.Model]),
)
async def list_models(request: ApiRequest) -> Any:
    """What you may choose, the default first."""
    return {"items": await sync_to_async(_models)(request.auth.user), "next_cursor": None}


def _models(user: User) -> list[dict[str, Any]]:
    models = list(visible_models(user))
    return [_model(model, is_default=number == 0) for number, model in enumerate(models)]


def _model(row: ModelConfig, is_default: bool) -> dict[str, Any]:
    rules = rules_for(row)
    return {
        "id": str(row.pk),
        "name": row.name,
        "kind": row.kind,
        "is_default": is_default,
        "context_size": rules.budget.context_size,
        "max_output_tokens": rules.budget.max_output_tokens,
    }


@router.get(
    "/usage", auth=allow("chat", "read"), response=http_schemas.answers(ok=provider_schemas.UsageReport)
)
async def read_usage(request: ApiRequest, period: Query[UsagePeriod]) -> Any:
    """Your own, from the ledger: one row per model call, at the price of that moment."""
    return await sync_to_async(_usage)(request.auth.user, period)


def _usage(user: User, period: UsagePeriod) -> dict[str, Any]:
    last = period.end or clock.now().date()
    first = period.start or last - timedelta(days=USAGE_DAYS)
    if first > last or (last - first).days > MAX_USAGE_DAYS:
        details = [{"field": "from", "message": "must be before `to`, by ten years at most"}]
        raise InvalidInput("`from` must be before `to`, by ten years at most.", details=details)
    items, total = usage_rows(user, first=first, last=last, group_by=period.group_by)
    dates = {"from": first.isoformat(), "to": last.isoformat()}
    return {"items": items, "next_cursor": None, "total": total, **dates}


@router.get(
    "/tokens", auth=allow("chat", "read"), response=http_schemas.answers(ok=http_schemas.Page[schemas.Token])
)
async def list_tokens(request: ApiRequest) -> Any:
    return {"items": await sync_to_async(_tokens)(request.auth.user), "next_cursor": None}


def _tokens(user: User) -> list[dict[str, Any]]:
    return [_token(row) for row in visible_tokens(user)]


def _token(row: ApiToken) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "prefix": row.prefix,
        "scopes": row.scopes,
        "created_at": _iso(row.created_at),
        "last_used_at": _iso(row.last_used_at),
    }


@router.post("/tokens", auth=allow("chat"), response=http_schemas.answers(created=schemas.CreatedToken))
async def new_token(request: ApiRequest, new: NewToken = NewToken()) -> Any:
    """The secret is told this once. A token cannot make one that may do more than itself."""
    return Status(201, await sync_to_async(_create_token)(request.auth, new))


def _create_token(caller: Caller, new: NewToken) -> dict[str, Any]:
    scopes = sorted(set(new.scopes or caller.scopes - {"admin"}))
    _check_reach(caller, scopes)
    row, secret = create_token(user=caller.user, name=new.name, scopes=scopes)
    return {**_token(row), "token": secret}


def _check_reach(caller: Caller, scopes: list[str]) -> None:
    beyond = set(scopes) - caller.scopes
    if beyond:
        raise Forbidden(f"You do not have the scope {min(beyond)} here yourself.", code="insufficient_scope")


@router.delete("/tokens/{token_id}", auth=allow("chat"), response=http_schemas.answers(404))
async def remove_token(request: ApiRequest, token_id: str) -> Any:
    """What uses it is refused from now on; streams it has open end. A token cannot delete one that may do more."""
    await sync_to_async(_delete_token)(request.auth, token_id)
    return Status(204, None)


def _delete_token(caller: Caller, token_id: str) -> None:
    row = accessible_token(caller.user, token_id)
    if caller.token_id is not None:
        _check_reach(caller, row.scopes)
    delete_token(user=caller.user, token_id=token_id)
