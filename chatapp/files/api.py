"""API operations on files: uploads, downloads, and pages of offloaded results."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import FileResponse, HttpResponse
from django.http.response import HttpResponseBase
from ninja import File, Query, Status, UploadedFile
from pydantic import Field

from agents.tools.office_files import DOCX, PPTX, XLSX
from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.files import images
from chatapp.files.attachments import check_size, content_path, store_upload
from chatapp.files.models import MAX_FILE_NAME_CHARS, Attachment, Offload
from chatapp.files.offloads import PAGE_CHARS, read_content, read_text
from chatapp.files.selectors import accessible_attachments, accessible_offload
from chatapp.forgetting.services import delete_file
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.database.text import normalize_text
from chatapp.operations.errors import NotFound
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Moment, Shape, answers
from memory.bounds import Position

files_router = Router(tags=["files"])

EXTENSIONS = images.EXTENSIONS | {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/plain": "txt",
    DOCX: "docx",
    XLSX: "xlsx",
    PPTX: "pptx",
}


class StoredFile(Shape):
    id: str
    name: str
    mime_type: str
    width: int
    height: int
    size_bytes: int
    url: str
    created_at: Moment


def file_shape(row: Attachment) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "mime_type": row.mime_type,
        "width": row.width,
        "height": row.height,
        "size_bytes": row.size_bytes,
        "url": f"/api/v1/files/{row.pk}",
        "created_at": iso_time(row.created_at),
    }


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    [row] = accessible_attachments(request.auth.user, [made])
    return Status(201, file_shape(row))


@files_router.post("/files", auth=allow("chat"), response=answers(413, created=StoredFile))
@creates(_again, "/files/{made}")
def upload(request: ApiRequest, file: File[UploadedFile]) -> Any:
    """Upload a file as the form field `file`: a PNG, JPEG, WebP or GIF image, which is stored upright and without
    metadata; or a text, a CSV, a PDF or an Office file (docx, xlsx, pptx), which the tool `files_read` reads. The type
    is detected from the content."""
    # Check the size before reading the file into memory.
    check_size(file.size or 0)
    name = normalize_text((file.name or "file")[:MAX_FILE_NAME_CHARS], MAX_FILE_NAME_CHARS)
    return Status(201, file_shape(store_upload(user=request.auth.user, name=name, content=file.read())))


BINARY = {"schema": {"type": "string", "format": "binary"}}
DOWNLOAD = {"responses": {200: {"content": dict.fromkeys(EXTENSIONS, BINARY)}}}


@files_router.get(
    "/files/{file_id}",
    auth=allow("chat", "read"),
    response=answers(404, ok=None),
    openapi_extra=DOWNLOAD,
)
def download(request: ApiRequest, file_id: str) -> Any:
    """Show an image, or download another file. A browser may cache the content, but checks each time whether it still
    exists and is yours: `If-None-Match` with its `ETag` returns 304."""
    [row] = accessible_attachments(request.auth.user, [file_id])
    response = file_response(row)
    response["Cache-Control"] = "private, no-cache"
    return response


def file_response(row: Attachment) -> HttpResponseBase:
    """Return the content, without cache headers. Raise NotFound."""
    path = content_path(row.sha256)
    if not path.exists():
        raise NotFound("The content of this file no longer exists.")
    response = FileResponse(path.open("rb"), content_type=row.mime_type)
    # Use our id as the name, because the user's name may contain characters that are invalid in a header.
    name = f"{row.pk}.{EXTENSIONS.get(row.mime_type, 'bin')}"
    _guard(response, name, is_image=row.mime_type in images.EXTENSIONS)
    response["ETag"] = f'"{row.sha256}"'
    return response


def _guard(response: HttpResponseBase, name: str, *, is_image: bool) -> None:
    """Add the headers that keep a browser from running the file, under this name."""
    # An image was encoded by this service. Anything else is a download, because a browser might run it.
    kind = "inline" if is_image else "attachment"
    response["Content-Disposition"] = f'{kind}; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    # A file that is opened in its own tab must not run scripts as a page of this service.
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"


@files_router.delete("/files/{file_id}", auth=allow("chat"), response=answers(404))
def delete(request: ApiRequest, file_id: str) -> Any:
    """Delete a file. Messages that showed it stay without it, and what answers read from it is deleted."""
    delete_file(request.auth.user, file_id, now=clock.now())
    return Status(204, None)


router = Router(tags=["tools"])

MAX_PAGE_CHARS = 200_000
CONTENT = {
    "responses": {
        200: {
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}}
                for kind in ("text/plain", "application/jsonl", *images.EXTENSIONS)
            }
        }
    }
}


class OffloadPage(Shape):
    ref: str
    kind: str = Field(description="result, image or context.")
    tool: str = Field(description="The tool that returned it; empty for a context.")
    mime_type: str
    size_bytes: int
    total_chars: int | None = Field(description="null for an image.")
    offset: int
    text: str
    next_offset: int | None
    content_url: str = Field(description="The complete content, as a file.")
    created_at: Moment


@router.get(
    "/conversations/{conversation_id}/offloads/{ref}",
    auth=allow("chat", "read"),
    response=answers(404, ok=OffloadPage),
)
def read_page(
    request: ApiRequest,
    conversation_id: str,
    ref: str,
    offset: Position = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_CHARS)] = PAGE_CHARS,
) -> Any:
    """Read a page of an offloaded result; `next_offset` is null at the end. An image has metadata, but no text."""
    row = accessible_offload(request.auth.user, conversation_id, ref)
    text = None if row.kind == Offload.Kind.IMAGE else read_text(row)
    page = (text or "")[offset : offset + limit]
    end = offset + len(page)
    return {
        "ref": str(row.pk),
        "kind": row.kind,
        "tool": row.tool_name,
        "mime_type": row.mime_type,
        "size_bytes": row.size_bytes,
        "total_chars": None if text is None else len(text),
        "offset": offset,
        "text": page,
        "next_offset": end if text is not None and page and end < len(text) else None,
        "content_url": f"/api/v1/conversations/{conversation_id}/offloads/{row.pk}/content",
        "created_at": iso_time(row.created_at),
    }


@router.get(
    "/conversations/{conversation_id}/offloads/{ref}/content",
    auth=allow("chat", "read"),
    response=answers(404, ok=None),
    openapi_extra=CONTENT,
)
def read_whole(request: ApiRequest, conversation_id: str, ref: str) -> Any:
    """Read the whole offload: text as a download, an image for display."""
    row = accessible_offload(request.auth.user, conversation_id, ref)
    is_image = row.kind == Offload.Kind.IMAGE
    response = HttpResponse(
        read_content(row), content_type=row.mime_type if is_image else f"{row.mime_type}; charset=utf-8"
    )
    _guard(response, row.name.rpartition("/")[2], is_image=is_image)
    response["Cache-Control"] = "private, no-store"
    return response
