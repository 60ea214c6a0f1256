"""The API of memory entries: add, read, change, forget, and their history."""

from __future__ import annotations

from typing import Any

from ninja import Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.forgetting.services import forget_entry
from chatapp.long_term import changes, schemas
from chatapp.long_term.access import accessible_entry
from chatapp.long_term.schemas import EntryChange, NewEntry, RevisionIn
from chatapp.long_term.selectors.entries import entry_history
from chatapp.operations import clock
from chatapp.operations.database.access import parse_id
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers

entries_router = Router(tags=["memory"])


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, read(request, made))


@entries_router.post("/memory/entries", auth=allow("memory"), response=answers(created=schemas.MemoryEntry))
@creates(_again, "/memory/entries/{made}")
def add(request: ApiRequest, new: NewEntry) -> Any:
    """Store a memory entry in your own words."""
    entry = changes.add_entry(user=request.auth.user, text=new.text, day=new.day, now=clock.now())
    return Status(201, schemas.entry_shape(entry))


@entries_router.get(
    "/memory/entries/{entry_id}",
    auth=allow("memory", "read"),
    response=answers(404, ok=schemas.MemoryEntry),
)
def read(request: ApiRequest, entry_id: str) -> Any:
    return schemas.entry_shape(accessible_entry(request.auth.user, entry_id))


@entries_router.patch(
    "/memory/entries/{entry_id}",
    auth=allow("memory"),
    response=answers(404, 409, ok=schemas.MemoryEntry),
)
def change(request: ApiRequest, entry_id: str, change: EntryChange) -> Any:
    """Replace the text of an entry. Later extractions do not overwrite it. The former text is kept in its history."""
    entry = changes.edit_entry(
        user=request.auth.user, entry_id=entry_id, text=change.text, revision=change.revision
    )
    return schemas.entry_shape(entry)


@entries_router.delete("/memory/entries/{entry_id}", auth=allow("memory"), response=answers(404))
def remove(request: ApiRequest, entry_id: str) -> Any:
    """Forget an entry with its history."""
    forget_entry(request.auth.user, parse_id(entry_id), now=clock.now())
    return Status(204, None)


@entries_router.get(
    "/memory/entries/{entry_id}/history",
    auth=allow("memory", "read"),
    response=answers(404, ok=Page[schemas.EntryRevision]),
)
def history(request: ApiRequest, entry_id: str) -> Any:
    """List the current text of an entry and its earlier ones, newest first."""
    texts = entry_history(accessible_entry(request.auth.user, entry_id))
    revisions = [schemas.revision_shape(row) | {"is_current": row is texts[0]} for row in texts]
    return {"items": revisions, "next_cursor": None}


@entries_router.post(
    "/memory/entries/{entry_id}/revert",
    auth=allow("memory"),
    response=answers(404, ok=schemas.MemoryEntry),
)
def revert(request: ApiRequest, entry_id: str, body: RevisionIn) -> Any:
    """Restore the text of an earlier revision as a new revision."""
    entry = changes.revert_entry(user=request.auth.user, entry_id=entry_id, revision=body.revision)
    return schemas.entry_shape(entry)
