"""The API of memory settings, and of entries that wait for approval."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router, Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.long_term import changes as memory_changes
from chatapp.long_term import schemas
from chatapp.long_term.actions.settings import update_memory_settings
from chatapp.long_term.selectors.entries import proposed_entries
from chatapp.operations import clock
from chatapp.operations.http.cursors import read_page
from chatapp.operations.http.schemas import MemorySettingsChanges, Page, answers
from memory.bounds import Cursor, PageSize

settings_router = Router(tags=["memory"])

COLUMNS = {"paused": "memory_paused", "review": "reviews_memory", "profile": "uses_profile"}


@settings_router.get(
    "/memory/settings", auth=allow("memory", "read"), response=answers(ok=schemas.MemorySettings)
)
async def read(request: ApiRequest) -> Any:
    return _shape(request.auth.user)


@settings_router.patch("/memory/settings", auth=allow("memory"), response=answers(ok=schemas.MemorySettings))
async def change(request: ApiRequest, changes: MemorySettingsChanges) -> Any:
    """Change the settings that are sent."""
    return await sync_to_async(_change)(request.auth.user, changes.sent())


def _change(user: User, changes: dict[str, bool]) -> dict[str, bool]:
    columns = {COLUMNS[name]: value for name, value in changes.items()}
    return _shape(update_memory_settings(user=user, changes=columns, now=clock.now()))


def _shape(user: User) -> dict[str, bool]:
    return {name: getattr(user, column) for name, column in COLUMNS.items()}


@settings_router.get(
    "/memory/review",
    auth=allow("memory", "read"),
    response=answers(ok=Page[schemas.MemoryEntry]),
)
async def waiting(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 50) -> Any:
    """List the entries that wait for your approval, newest first. Until then they are in no file, search, recall or
    profile."""
    return await sync_to_async(_waiting)(request.auth.user, cursor, limit)


def _waiting(user: User, cursor: str | None, limit: int) -> dict[str, Any]:
    return read_page(proposed_entries(user), "created_at", cursor, limit, schemas.entry_shape)


@settings_router.post(
    "/memory/review/{entry_id}/approve",
    auth=allow("memory"),
    response=answers(404, ok=schemas.MemoryEntry),
)
async def approve(request: ApiRequest, entry_id: str) -> Any:
    """Approve an entry: it is remembered from now on. A second approval changes nothing."""
    return await sync_to_async(_approve)(request.auth.user, entry_id)


def _approve(user: User, entry_id: str) -> dict[str, Any]:
    return schemas.entry_shape(memory_changes.approve_entry(user=user, entry_id=entry_id))


@settings_router.post("/memory/review/{entry_id}/reject", auth=allow("memory"), response=answers(404, 409))
async def reject(request: ApiRequest, entry_id: str) -> Any:
    """Reject an entry: it is forgotten before it was remembered. One that was approved already is deleted as an
    entry."""
    await sync_to_async(memory_changes.reject_entry)(user=request.auth.user, entry_id=entry_id)
    return Status(204, None)
