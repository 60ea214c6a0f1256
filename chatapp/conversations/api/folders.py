"""Folders and their files. Conversations are moved by changing the conversation."""

from __future__ import annotations

from typing import Any, cast

from ninja import Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.agent_presets.api import chosen_agent
from chatapp.conversations.folders.actions import FolderColumns, create_folder, delete_folder, update_folder
from chatapp.conversations.folders.schemas import Folder, FolderChanges, NewFolder, folder_shape
from chatapp.conversations.folders.selectors import accessible_folder, own_folders
from chatapp.files.actions import put_into_folder, take_out_of_folder
from chatapp.files.api import StoredFile, file_shape
from chatapp.files.selectors import accessible_attachments, files_of_folder
from chatapp.operations import clock
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers

router = Router(tags=["conversations"])
FILE_PATH = "/folders/{folder_id}/files/{file_id}"


@router.get("/folders", auth=allow("chat", "read"), response=answers(ok=Page[Folder]))
def list_folders(request: ApiRequest) -> Any:
    """List all your folders, by name."""
    folders = [folder_shape(row) for row in own_folders(request.auth.user)]
    return {"items": folders, "next_cursor": None}


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(201, read(request, made))


@router.post("/folders", auth=allow("chat"), response=answers(404, 409, created=Folder))
@creates(_again, "/folders/{made}")
def create(request: ApiRequest, new: NewFolder) -> Any:
    """Create a folder. Its instructions are part of the system prompt of every answer in it."""
    columns = _checked(request.auth.user, new.model_dump())
    return Status(201, folder_shape(create_folder(user=request.auth.user, now=clock.now(), **columns)))


def _checked(user: User, fields: dict[str, Any]) -> FolderColumns:
    if "agent" in fields:
        fields["agent"] = chosen_agent(user, fields["agent"])
    return cast(FolderColumns, fields)


@router.get("/folders/{folder_id}", auth=allow("chat", "read"), response=answers(404, ok=Folder))
def read(request: ApiRequest, folder_id: str) -> Any:
    return folder_shape(accessible_folder(request.auth.user, folder_id))


@router.patch("/folders/{folder_id}", auth=allow("chat"), response=answers(404, 409, ok=Folder))
def change(request: ApiRequest, folder_id: str, changes: FolderChanges) -> Any:
    """Change the given fields. A new agent applies to conversations created from now on."""
    user, fields = request.auth.user, changes.sent()
    folder = accessible_folder(user, folder_id)
    if fields:
        folder = update_folder(user=user, folder_id=folder_id, **_checked(user, fields))
    return folder_shape(folder)


@router.delete("/folders/{folder_id}", auth=allow("chat"), response=answers(404))
def delete(request: ApiRequest, folder_id: str) -> Any:
    """Delete a folder. Its conversations stay, in no folder."""
    delete_folder(user=request.auth.user, folder_id=folder_id)
    return Status(204, None)


# --- Files, available in each conversation of the folder -------------------------------------------------


@router.get(
    "/folders/{folder_id}/files", auth=allow("chat", "read"), response=answers(404, ok=Page[StoredFile])
)
def list_files(request: ApiRequest, folder_id: str) -> Any:
    rows = files_of_folder(accessible_folder(request.auth.user, folder_id))
    return {"items": [file_shape(row) for row in rows], "next_cursor": None}


@router.put(FILE_PATH, auth=allow("chat"), response=answers(404, 409))
def put_file(request: ApiRequest, folder_id: str, file_id: str) -> Any:
    """Add one of your uploads to the folder. Models can read it with the tool `files_read` in every conversation of the
    folder."""
    folder = accessible_folder(request.auth.user, folder_id)
    [attachment] = accessible_attachments(request.auth.user, [file_id])
    put_into_folder(folder=folder, attachment=attachment)
    return Status(204, None)


@router.delete(FILE_PATH, auth=allow("chat"), response=answers(404))
def remove_file(request: ApiRequest, folder_id: str, file_id: str) -> Any:
    """Remove a file from the folder. Messages that show it keep it."""
    folder = accessible_folder(request.auth.user, folder_id)
    [attachment] = accessible_attachments(request.auth.user, [file_id])
    take_out_of_folder(folder=folder, attachment=attachment)
    return Status(204, None)
