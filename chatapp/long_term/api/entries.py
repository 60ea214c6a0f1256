"""The API of memory entries: add, read, change, forget, and their history."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from ninja import Router, Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.long_term import changes, schemas
from chatapp.long_term.access import accessible_entry
from chatapp.long_term.schemas import EntryChange, NewEntry, RevisionIn
from chatapp.long_term.selectors.entries import entry_history
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Page, answers

entries_router = Router(tags=["memory"])


async def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, await sync_to_async(_read)(request.auth.user, made))


@entries_router.post("/memory/entries", auth=allow("memory"), response=answers(created=schemas.MemoryEntry))
@creates(_again, "/memory/entries/{made}")
async def add(request: ApiRequest, new: NewEntry) -> Any:
    """Store something to remember, in your own words."""
    return Status(201, await sync_to_async(_add)(request.auth.user, new))


def _add(user: User, new: NewEntry) -> dict[str, Any]:
    entry = changes.add_entry(user=user, text=new.text, day=new.day, now=clock.now())
    return schemas.entry_shape(entry)


@entries_router.get(
    "/memory/entries/{entry_id}",
    auth=allow("memory", "read"),
    response=answers(404, ok=schemas.MemoryEntry),
)
async def read(request: ApiRequest, entry_id: str) -> Any:
    return await sync_to_async(_read)(request.auth.user, entry_id)


def _read(user: User, entry_id: str) -> dict[str, Any]:
    return schemas.entry_shape(accessible_entry(user, entry_id))


@entries_router.patch(
    "/memory/entries/{entry_id}",
    auth=allow("memory"),
    response=answers(404, 409, ok=schemas.MemoryEntry),
)
async def change(request: ApiRequest, entry_id: str, change: EntryChange) -> Any:
    """Replace the text of an entry. Your words stay, whatever is extracted again; the former text is kept as its
    history."""
    return await sync_to_async(_change)(request.auth.user, entry_id, change)


def _change(user: User, entry_id: str, change: EntryChange) -> dict[str, Any]:
    entry = changes.edit_entry(user=user, entry_id=entry_id, text=change.text, revision=change.revision)
    return schemas.entry_shape(entry)


@entries_router.delete("/memory/entries/{entry_id}", auth=allow("memory"), response=answers(404))
async def remove(request: ApiRequest, entry_id: str) -> Any:
    """Forget an entry with its history."""
    await sync_to_async(changes.forget_entry)(user=request.auth.user, entry_id=entry_id)
    return Status(204, None)


@entries_router.get(
    "/memory/entries/{entry_id}/history",
    auth=allow("memory", "read"),
    response=answers(404, ok=Page[schemas.EntryRevision]),
)
async def history(request: ApiRequest, entry_id: str) -> Any:
    """List the present text of an entry and its earlier ones, newest first."""
    return {"items": await sync_to_async(_history)(request.auth.user, entry_id), "next_cursor": None}


def _history(user: User, entry_id: str) -> list[dict[str, Any]]:
    return [
        {
            "revision": said.number,
            "text": said.text,
            "author": said.author,
            "written_at": iso_time(said.written_at),
            "is_current": said.is_current,
        }
        for said in entry_history(accessible_entry(user, entry_id))
    ]


@entries_router.post(
    "/memory/entries/{entry_id}/revert",
    auth=allow("memory"),
    response=answers(404, ok=schemas.MemoryEntry),
)
async def revert(request: ApiRequest, entry_id: str, body: RevisionIn) -> Any:
    """Restore the text of an earlier revision, as a new one."""
    return await sync_to_async(_revert)(request.auth.user, entry_id, body.revision)


def _revert(user: User, entry_id: str, revision: int) -> dict[str, Any]:
    entry = changes.revert_entry(user=user, entry_id=entry_id, revision=revision)
    return schemas.entry_shape(entry)
