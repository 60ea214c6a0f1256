"""The files of a folder, which are available in each conversation in it."""

from __future__ import annotations

from typing import Any

from ninja import Status

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.conversations.folders.selectors import accessible_folder
from chatapp.files.actions import put_into_folder, take_out_of_folder
from chatapp.files.api import StoredFile, file_shape
from chatapp.files.selectors import accessible_attachments, files_of_folder
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers

router = Router(tags=["conversations"])
PATH = "/folders/{folder_id}/files/{file_id}"


@router.get(
    "/folders/{folder_id}/files", auth=allow("chat", "read"), response=answers(404, ok=Page[StoredFile])
)
def list_files(request: ApiRequest, folder_id: str) -> Any:
    rows = files_of_folder(accessible_folder(request.auth.user, folder_id))
    return {"items": [file_shape(row) for row in rows], "next_cursor": None}


@router.put(PATH, auth=allow("chat"), response=answers(404, 409))
def put_file(request: ApiRequest, folder_id: str, file_id: str) -> Any:
    """Add one of your uploads to the folder. Models can read it with the tool `files_read` in every conversation of the
    folder."""
    folder = accessible_folder(request.auth.user, folder_id)
    [attachment] = accessible_attachments(request.auth.user, [file_id])
    put_into_folder(folder=folder, attachment=attachment)
    return Status(204, None)


@router.delete(PATH, auth=allow("chat"), response=answers(404))
def remove_file(request: ApiRequest, folder_id: str, file_id: str) -> Any:
    """Remove a file from the folder. Messages that show it keep it."""
    folder = accessible_folder(request.auth.user, folder_id)
    [attachment] = accessible_attachments(request.auth.user, [file_id])
    take_out_of_folder(folder=folder, attachment=attachment)
    return Status(204, None)
