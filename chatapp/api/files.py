"""Uploads: images in and out, cleaned; texts, CSV and PDF for the agent's tools to read."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import FileResponse
from ninja import File, Router, Status, UploadedFile

from chatapp.api import shapes
from chatapp.api.auth import ApiRequest, allow
from chatapp.attachments import check_size, content_path, delete_attachment, store_upload
from chatapp.errors import NotFound
from chatapp.models import Attachment, User
from chatapp.selectors.access import accessible_attachments
from chatapp.text import normalize_text

files_router = Router(tags=["files"])

EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/plain": "txt",
}
YEAR_S = 365 * 24 * 3600


class StoredFile(shapes.Shape):
    id: str
    name: str
    mime_type: str
    width: int
    height: int
    size_bytes: int
    url: str
    created_at: shapes.Moment


def _shape(row: Attachment) -> dict[str, Any]:
    return {
        "id": str(row.pk),
        "name": row.name,
        "mime_type": row.mime_type,
        "width": row.width,
        "height": row.height,
        "size_bytes": row.size_bytes,
        "url": f"/api/v1/files/{row.pk}",
        "created_at": row.created_at.isoformat().replace("+00:00", "Z"),
    }


@files_router.post("/files", auth=allow("chat"), response=shapes.answers(413, created=StoredFile))
async def upload(request: ApiRequest, file: File[UploadedFile]) -> Any:
    """As the form field `file`: a PNG, JPEG, WebP or GIF image, which is stored upright and without metadata; or a
    text, a CSV or a PDF, which the tool `files_read` reads. What a file is, its content says."""
    return Status(201, await sync_to_async(_store)(request.auth.user, file))


def _store(user: User, file: UploadedFile) -> dict[str, Any]:
    check_size(file.size or 0)
    name = normalize_text((file.name or "file")[:255], 255, "The file's name")
    return _shape(store_upload(user=user, name=name, content=file.read()))


BINARY = {"schema": {"type": "string", "format": "binary"}}
DOWNLOAD = {"responses": {200: {"content": dict.fromkeys(EXTENSIONS, BINARY)}}}
SHOWN = frozenset({"image/png", "image/jpeg", "image/webp"})


@files_router.get(
    "/files/{file_id}",
    auth=allow("chat", "read"),
    response=shapes.answers(404, ok=None),
    openapi_extra=DOWNLOAD,
)
async def download(request: ApiRequest, file_id: str) -> Any:
    """The file itself; what is no image as a download."""
    return await sync_to_async(_response)(request.auth.user, file_id)


def _response(user: User, file_id: str) -> FileResponse:
    [row] = accessible_attachments(user, [file_id])
    path = content_path(row.sha256)
    if not path.exists():
        raise NotFound("The content of this file is gone.")
    response = FileResponse(path.open("rb"), content_type=row.mime_type)
    extension = EXTENSIONS.get(row.mime_type)
    # Shown in the page only because we wrote it ourselves; anything else would be handed out as a download.
    kind = "inline" if row.mime_type in SHOWN else "attachment"
    response["Content-Disposition"] = f'{kind}; filename="{row.pk}.{extension or "bin"}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["Cache-Control"] = f"private, max-age={YEAR_S}, immutable"
    return response


@files_router.delete("/files/{file_id}", auth=allow("chat"), response=shapes.answers(404))
async def delete(request: ApiRequest, file_id: str) -> Any:
    """Messages that showed it go on without it."""
    await sync_to_async(_delete)(request.auth.user, file_id)
    return Status(204, None)


def _delete(user: User, file_id: str) -> None:
    [row] = accessible_attachments(user, [file_id])
    delete_attachment(row)
