"""API operations on the caller's profile, settings and tokens, and export and deletion of the account."""

from __future__ import annotations

from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.http.response import HttpResponseBase
from ninja import Status

from chatapp.accounts.actions import create_token, delete_token, update_personal_settings
from chatapp.accounts.archive import write_account_archive
from chatapp.accounts.callers import ApiRequest, Caller, allow
from chatapp.accounts.confirming import confirm_identity, confirm_password
from chatapp.accounts.idempotency import creates
from chatapp.accounts.schemas import (
    AccountDeletion,
    CreatedToken,
    Me,
    MeChanges,
    NewToken,
    Settings,
    SettingsChanges,
    Token,
    me_shape,
    token_shape,
)
from chatapp.accounts.selectors import accessible_token, visible_tokens
from chatapp.agent_presets.services import agent_files
from chatapp.compaction.selectors import exported_compactions
from chatapp.conversations.export import conversation_files
from chatapp.conversations.folders.selectors import folder_files
from chatapp.files.attachments import uploaded_files
from chatapp.files.offloads import offloaded_files
from chatapp.forgetting.accounts import delete_account
from chatapp.long_term.actions.settings import update_settings
from chatapp.long_term.archive import memory_files
from chatapp.operations import clock
from chatapp.operations.database import audit
from chatapp.operations.database.threads import in_long_work_thread
from chatapp.operations.errors import Forbidden
from chatapp.operations.http.downloads import zip_download
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers
from chatapp.operations.models import AuditEvent
from chatapp.providers.usage import usage_files
from chatapp.runs.selectors import trace_files

router = Router(tags=["account"])

ZIP = {"schema": {"type": "string", "format": "binary"}}
ARCHIVE_PARTS = (
    partial(conversation_files, compactions_of=exported_compactions),
    uploaded_files,
    offloaded_files,
    memory_files,
    agent_files,
    folder_files,
    usage_files,
    trace_files,
)


@router.get("/me", auth=allow("chat", "read", "memory", "admin"), response=answers(ok=Me))
async def read_me(request: ApiRequest) -> Any:
    return me_shape(request.auth.user, request.auth.scopes)


@router.patch("/me", auth=allow("chat"), response=answers(ok=Me))
def change_me(request: ApiRequest, changes: MeChanges) -> Any:
    """Change the fields that are sent. The time zone decides when your days begin."""
    if changes.model_fields_set:
        update_settings(user=request.auth.user, changes=changes.sent())
    return me_shape(request.auth.user, request.auth.scopes)


@router.get("/me/settings", auth=allow("chat", "read"), response=answers(ok=Settings))
async def read_settings(request: ApiRequest) -> Any:
    """Show your settings, which apply on every device."""
    return request.auth.user.personal_settings()


@router.patch("/me/settings", auth=allow("chat"), response=answers(ok=Settings))
def change_settings(request: ApiRequest, changes: SettingsChanges) -> Any:
    """Change the settings that are sent."""
    columns = changes.columns()
    if columns:
        update_personal_settings(user=request.auth.user, changes=columns)
    return request.auth.user.personal_settings()


@router.delete("/me", auth=allow("chat"), response=answers(403, 409))
async def delete_me(request: ApiRequest, sure: AccountDeletion = AccountDeletion()) -> Any:
    """Delete the account with everything in it: conversations, memory, files, tokens, usage. This cannot be undone.

    Only a page can do this, with the `password`; a token cannot.
    """
    await confirm_password(request, sure.password)
    await sync_to_async(delete_account)(request.auth.user, now=clock.now())
    # Sign out last, so that a refused user, e.g. the only admin, stays signed in.
    await sync_to_async(request.session.flush)()
    return Status(204, None)


@router.get(
    "/export",
    auth=allow("chat", "read"),
    response=answers(403, ok=None),
    openapi_extra={"responses": {200: {"content": {"application/zip": ZIP}}}},
)
async def export_everything(request: ApiRequest) -> HttpResponseBase:
    """Download all your data as a zip: conversations, files, memory with its history, agents, usage. A token needs
    the scope `read`, or both `chat` and `memory`."""
    scopes = request.auth.scopes
    if "read" not in scopes and not {"chat", "memory"} <= scopes:
        message = "This needs a token with the scope read, or with chat and memory."
        raise Forbidden(message, code="insufficient_scope")
    user = request.auth.user
    await sync_to_async(audit.record)(AuditEvent.Kind.EXPORTED, user_id=user.pk)
    # Packing takes long, and answers would wait for it in a database thread.
    archive = await in_long_work_thread(write_account_archive)(user, ARCHIVE_PARTS)
    return zip_download(archive, f"palimpsest-{clock.now().date().isoformat()}.zip")


@router.get("/tokens", auth=allow("chat", "read"), response=answers(ok=Page[Token]))
def list_tokens(request: ApiRequest) -> Any:
    return {"items": [token_shape(row) for row in visible_tokens(request.auth.user)], "next_cursor": None}


def _token_again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    row = accessible_token(request.auth.user, made)
    # Only the first response contained the secret, because only its hash is stored.
    return Status(201, {**token_shape(row), "token": None})


@router.post("/tokens", auth=allow("chat"), response=answers(created=CreatedToken))
@creates(_token_again, "/tokens/{made}")
async def new_token(request: ApiRequest, new: NewToken = NewToken()) -> Any:
    """Create a token; only this response contains its secret. Only a page can do this, soon after its user signed in
    or with the `password`; a token cannot."""
    await confirm_identity(request, new.password)
    return Status(201, await sync_to_async(_create_token)(request.auth, new))


def _create_token(caller: Caller, new: NewToken) -> dict[str, Any]:
    # An operator's token gets the scope `admin` only if the request names it.
    scopes = sorted(set(new.scopes or caller.scopes - {"admin"}))
    _check_scopes(caller, scopes)
    row, secret = create_token(user=caller.user, name=new.name, scopes=scopes, expires_at=new.expires_at)
    return {**token_shape(row), "token": secret}


def _check_scopes(caller: Caller, scopes: list[str]) -> None:
    """Raise Forbidden if the caller lacks one of the scopes."""
    beyond = set(scopes) - caller.scopes
    if beyond:
        raise Forbidden(
            f"You cannot use the scope {min(beyond)}, because you do not have it.", code="insufficient_scope"
        )


@router.delete("/tokens/{token_id}", auth=allow("chat"), response=answers(404))
def remove_token(request: ApiRequest, token_id: str) -> Any:
    """Delete a token: programs that use it are refused from now on, and their open streams end. A token cannot delete
    another one with a scope that it lacks."""
    caller = request.auth
    row = accessible_token(caller.user, token_id)
    # A page may delete every token of its user, so that the owner can lock out any program.
    if caller.token_id is not None:
        _check_scopes(caller, row.scopes)
    delete_token(user=caller.user, token_id=token_id)
    return Status(204, None)
