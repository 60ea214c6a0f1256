"""The API for several conversations in one request: change them, or download them as one file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import IO, Annotated, Any, Literal, Self

from django.http.response import HttpResponseBase
from ninja.params.functions import Query
from pydantic import Field, model_validator

from chatapp.accounts.archive import ArchiveFile, safe_file_name, write_archive
from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.compaction.selectors import exported_compactions
from chatapp.conversations.access import accessible_conversation
from chatapp.conversations.export import json_pieces, markdown_pieces
from chatapp.conversations.folders.selectors import accessible_folder
from chatapp.conversations.models import Conversation
from chatapp.features.bulk.services import Action, change_conversations
from chatapp.operations import clock
from chatapp.operations.database.threads import in_long_work_thread
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.downloads import zip_download
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, Shape, answers
from memory.bounds import Id

router = Router(tags=["conversations"])

MAX_AT_ONCE = 100
IDS_CHARS = MAX_AT_ONCE * 37
"""A UUID has 36 characters, plus a comma."""
ZIP_RESPONSE = {"responses": {200: {"content": {"application/zip": {"schema": {"type": "string"}}}}}}


class BulkChange(Body):
    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_AT_ONCE)]
    action: Action
    folder: Id | None = Field(None, description="For `move`: the id of the folder; null for no folder.")

    @model_validator(mode="after")
    def _only_moves_name_a_folder(self) -> Self:
        if "folder" in self.model_fields_set and self.action != "move":
            raise ValueError("folder is only allowed with the action move")
        return self


class Refused(Shape):
    id: str
    message: str


class BulkResult(Shape):
    done: list[str] = Field(
        description="Conversations now in the requested state, whether changed by this request or earlier."
    )
    not_found: list[str]
    refused: list[Refused]


@router.post("/conversations/bulk", auth=allow("chat"), response=answers(404, ok=BulkResult))
def change(request: ApiRequest, asked: BulkChange) -> Any:
    """Archive, move, delete or restore up to 100 conversations. The request is idempotent. If the trash is switched
    off, `trash` deletes at once."""
    folder = accessible_folder(request.auth.user, asked.folder) if asked.folder else None
    return change_conversations(request.auth.user, asked.ids, asked.action, folder, now=clock.now())


@router.get(
    "/conversations/export",
    auth=allow("chat", "read"),
    response=answers(404, ok=None),
    openapi_extra=ZIP_RESPONSE,
)
async def export(
    request: ApiRequest,
    ids: str = Query(..., max_length=IDS_CHARS, description="Up to 100 ids, with commas between them."),
    format: Literal["json", "markdown"] = "markdown",
) -> HttpResponseBase:
    """Download a zip with one file for each conversation, in the format of the export of a single one."""
    archive = await in_long_work_thread(_archive)(request.auth.user, ids, format)
    return zip_download(archive, "conversations.zip")


def _archive(user: User, ids: str, format: str) -> IO[bytes]:
    wanted = list(dict.fromkeys(ids.split(",")))
    if len(wanted) > MAX_AT_ONCE:
        message = f"There may be {MAX_AT_ONCE} ids at most."
        raise InvalidInput.in_field("ids", message, message)
    # Check all of them before writing anything: the response is the complete archive or 404.
    rows = [accessible_conversation(user, conversation_id) for conversation_id in wanted]
    return write_archive(_files(rows, format))


def _files(rows: list[Conversation], format: str) -> Iterator[ArchiveFile]:
    ending = "json" if format == "json" else "md"
    read = partial(json_pieces, compactions_of=exported_compactions) if format == "json" else markdown_pieces
    for row in rows:
        # Include the id, because titles are not unique.
        name = f"{row.created_at.date().isoformat()} {safe_file_name(row.title or 'Conversation')} {row.pk}"
        yield f"conversations/{name}.{ending}", read(row)
