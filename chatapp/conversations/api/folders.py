"""Folders: list, make, change, delete. A conversation is moved by a change of the conversation."""

from __future__ import annotations

from typing import Any, cast

from asgiref.sync import sync_to_async
from ninja import Router, Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.agent_presets.api import chosen_agent
from chatapp.conversations.folders.actions import FolderColumns, create_folder, delete_folder, update_folder
from chatapp.conversations.folders.schemas import Folder, FolderChanges, NewFolder, folder_shape
from chatapp.conversations.folders.selectors import accessible_folder, own_folders
from chatapp.operations import clock
from chatapp.operations.http.schemas import Page, answers

router = Router(tags=["conversations"])


@router.get("/folders", auth=allow("chat", "read"), response=answers(ok=Page[Folder]))
async def list_folders(request: ApiRequest) -> Any:
    """List all your folders, by name."""
    return await sync_to_async(_page)(request.auth.user)


def _page(user: User) -> dict[str, Any]:
    return {"items": [folder_shape(row) for row in own_folders(user)], "next_cursor": None}


async def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, await sync_to_async(_read)(request.auth.user, made))


@router.post("/folders", auth=allow("chat"), response=answers(404, 409, created=Folder))
@creates(_again, "/folders/{made}")
async def create(request: ApiRequest, new: NewFolder) -> Any:
    """Make a folder. Its instructions are part of the system prompt of every answer in it."""
    return Status(201, await sync_to_async(_create)(request.auth.user, new))


def _create(user: User, new: NewFolder) -> dict[str, Any]:
    columns = _checked(user, new.model_dump())
    return folder_shape(create_folder(user=user, now=clock.now(), **columns))


def _checked(user: User, fields: dict[str, Any]) -> FolderColumns:
    if "agent" in fields:
        fields["agent"] = chosen_agent(user, fields["agent"])
    return cast(FolderColumns, fields)


@router.get("/folders/{folder_id}", auth=allow("chat", "read"), response=answers(404, ok=Folder))
async def read(request: ApiRequest, folder_id: str) -> Any:
    return await sync_to_async(_read)(request.auth.user, folder_id)


def _read(user: User, folder_id: str) -> dict[str, Any]:
    return folder_shape(accessible_folder(user, folder_id))


@router.patch("/folders/{folder_id}", auth=allow("chat"), response=answers(404, 409, ok=Folder))
async def change(request: ApiRequest, folder_id: str, changes: FolderChanges) -> Any:
    """Change the fields that are sent. Another agent is for conversations that begin from now on."""
    return await sync_to_async(_change)(request.auth.user, folder_id, changes.sent())


def _change(user: User, folder_id: str, fields: dict[str, Any]) -> dict[str, Any]:
    if not fields:
        return _read(user, folder_id)
    accessible_folder(user, folder_id)
    return folder_shape(update_folder(user=user, folder_id=folder_id, **_checked(user, fields)))


@router.delete("/folders/{folder_id}", auth=allow("chat"), response=answers(404))
async def delete(request: ApiRequest, folder_id: str) -> Any:
    """Delete a folder. Its conversations stay, in no folder."""
    await sync_to_async(delete_folder)(user=request.auth.user, folder_id=folder_id)
    return Status(204, None)
