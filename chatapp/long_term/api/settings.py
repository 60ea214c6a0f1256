"""The API of memory settings, and of entries that wait for approval."""

from __future__ import annotations

from typing import Any

from ninja import Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.long_term import changes as memory_changes
from chatapp.long_term import schemas
from chatapp.long_term.actions.entries import reject_entry
from chatapp.long_term.actions.settings import update_memory_settings
from chatapp.long_term.selectors.entries import proposed_entries
from chatapp.operations import clock
from chatapp.operations.http.cursors import read_page
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import MemorySettingsChanges, Page, answers
from memory.bounds import Cursor, PageSize

settings_router = Router(tags=["memory"])

COLUMNS = {"paused": "memory_paused", "review": "reviews_memory", "profile": "uses_profile"}


@settings_router.get(
    "/memory/settings", auth=allow("memory", "read"), response=answers(ok=schemas.MemorySettings)
)
def read(request: ApiRequest) -> Any:
    return _shape(request.auth.user)


@settings_router.patch("/memory/settings", auth=allow("memory"), response=answers(ok=schemas.MemorySettings))
def change(request: ApiRequest, changes: MemorySettingsChanges) -> Any:
    """Change the settings that are sent; others stay as they are."""
    columns = {COLUMNS[name]: value for name, value in changes.sent().items()}
    return _shape(update_memory_settings(user=request.auth.user, changes=columns, now=clock.now()))


def _shape(user: User) -> dict[str, bool]:
    return {name: getattr(user, column) for name, column in COLUMNS.items()}


@settings_router.get(
    "/memory/review",
    auth=allow("memory", "read"),
    response=answers(ok=Page[schemas.MemoryEntry]),
)
def waiting(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 50) -> Any:
    """List the entries that wait for your approval, newest first. Until approved, they are in no file, search, recall
    or profile."""
    entries = proposed_entries(request.auth.user)
    return read_page(entries, "created_at", cursor, limit, schemas.entry_shape)


@settings_router.post(
    "/memory/review/{entry_id}/approve",
    auth=allow("memory"),
    response=answers(404, ok=schemas.MemoryEntry),
)
def approve(request: ApiRequest, entry_id: str) -> Any:
    """Approve an entry, so that it is remembered. A second approval changes nothing."""
    return schemas.entry_shape(memory_changes.approve_entry(user=request.auth.user, entry_id=entry_id))


@settings_router.post("/memory/review/{entry_id}/reject", auth=allow("memory"), response=answers(404, 409))
def reject(request: ApiRequest, entry_id: str) -> Any:
    """Reject a proposed entry: it is deleted and not proposed again. Return 409 if it was approved already; delete it
    instead."""
    reject_entry(user=request.auth.user, entry_id=entry_id, now=clock.now())
    return Status(204, None)
