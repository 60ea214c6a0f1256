"""The API to upload exports and follow their imports."""

from __future__ import annotations

from typing import Any, Literal

from ninja import File, Status, UploadedFile
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.features.importing import job, uploads
from chatapp.features.importing.job_actions import try_import_again
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import accessible_import, estimate_costs, imports_of
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.http.bodies import BYTES
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Body, Moment, Name, Page, Shape, answers
from memory.bounds import Position

router = Router(tags=["conversations"])


class Problem(Shape):
    index: int = Field(description="The conversation's place in the file, from 0.")
    reason: str


class ImportShape(Shape):
    id: str
    file_name: str
    size_bytes: int
    received_bytes: int = Field(description="Bytes of the file received so far.")
    part_bytes: int = Field(description="Most bytes in one part of an upload.")
    state: Literal["uploading", "waiting", "running", "done", "failed"]
    progress: float = Field(description="From 0 to 1.")
    source: str = Field(description="The program that made the export; empty until it is detected.")
    conversations: int = Field(description="Conversations that it imported.")
    messages: int
    known: int = Field(description="Conversations that were imported before.")
    problem_count: int
    problems: list[Problem] = Field(
        description="The first conversations that could not be imported, with the reasons."
    )
    left_out: dict[str, int] = Field(
        description="What was left out of imported conversations, counted by name."
    )
    error: str = Field(description="Why the whole import failed; empty if it did not.")
    can_try_again: bool = Field(description="It failed, but its file is still stored.")
    created_at: Moment
    finished_at: Moment | None


class NewUpload(Body):
    file_name: Name
    size_bytes: int = Field(gt=0, le=2**50)
    fingerprint: str = Field(
        "",
        max_length=64,
        description="Identifies the file when an upload is continued, e.g. its modification time.",
    )


class Costs(Shape):
    conversations: int
    messages: int
    tokens: int = Field(description="About how many tokens a model would read to summarise everything.")
    model: str | None
    cost: float | None = Field(description="The price of those tokens in dollars; null if it is not known.")
    embedding_tokens: int = Field(
        description="Tokens to embed for the search by meaning; 0 if it is not used."
    )


def _shape(row: Import) -> dict[str, Any]:
    share = row.read_bytes / row.total_bytes if row.total_bytes else 0.0
    report = row.report
    return {
        "id": str(row.pk),
        "file_name": row.file_name,
        "size_bytes": row.size_bytes,
        "received_bytes": row.received_bytes,
        "part_bytes": uploads.part_bytes(),
        "state": row.state,
        "progress": 1.0 if row.state == Import.State.DONE else min(share, 1.0),
        "source": report.get("source", ""),
        **{name: report.get(name, 0) for name in ("conversations", "messages", "known", "problem_count")},
        "problems": report.get("problems", []),
        "left_out": report.get("left_out", {}),
        "error": row.error,
        "can_try_again": row.state == Import.State.FAILED and row.kept_until is not None,
        "created_at": iso_time(row.created_at),
        "finished_at": iso_time(row.finished_at),
    }


def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(202, read_import(request, made))


@router.post("/imports", auth=allow("chat"), response=answers(409, 413, accepted=ImportShape))
@creates(_again)
def new_import(request: ApiRequest, file: File[UploadedFile]) -> Any:
    """Import an export of ChatGPT, Claude, Open WebUI, LibreChat or Palimpsest, sent as the form field `file`: JSON or
    the zip. The import runs in the background, calls no model, and skips conversations that were imported before."""
    row = job.begin(
        user=request.auth.user, name=file.name or "", chunks=file.chunks(), size_bytes=file.size or 0
    )
    return Status(202, _shape(row))


def _upload_again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return read_import(request, made)


@router.post("/imports/uploads", auth=allow("chat"), response=answers(409, 413, 507, ok=ImportShape))
@creates(_upload_again)
def begin_upload(request: ApiRequest, body: NewUpload) -> Any:
    """Start to upload an export in parts, or continue an upload of the same file: `received_bytes` of it have arrived.
    The import starts after the last part. An upload that is not continued is deleted after two days."""
    row = uploads.begin(
        user=request.auth.user, name=body.file_name, size_bytes=body.size_bytes, fingerprint=body.fingerprint
    )
    return _shape(row)


@router.post(
    "/imports/{import_id}/parts",
    auth=allow("chat"),
    response=answers(404, 409, 413, 507, ok=ImportShape),
    openapi_extra={"requestBody": {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}},
)
def add_part(request: ApiRequest, import_id: str, offset: Position = 0) -> Any:
    """Upload the bytes of the file from `offset` on, as the body. 409 if they are not the next bytes: `GET
    /imports/{import_id}` returns which are."""
    # The body is read only after the part is known to be the next one.
    row = uploads.receive_part(
        user=request.auth.user, import_id=import_id, offset=offset, read=lambda: request.body
    )
    return _shape(row)


@router.get("/imports", auth=allow("chat", "read"), response=answers(ok=Page[ImportShape]))
def list_imports(request: ApiRequest) -> Any:
    """List the newest 50 imports, newest first. Each is kept for 90 days."""
    rows = imports_of(request.auth.user)
    return {"items": [_shape(row) for row in rows], "next_cursor": None}


@router.get("/imports/cost", auth=allow("chat", "read"), response=answers(ok=Costs))
def read_costs(request: ApiRequest) -> Any:
    """Show how much you imported, and what it would cost to summarise all of it with this model. No model is called
    until you continue a conversation; then that conversation is summarised."""
    return estimate_costs(request.auth.user)


@router.get("/imports/{import_id}", auth=allow("chat", "read"), response=answers(404, ok=ImportShape))
def read_import(request: ApiRequest, import_id: str) -> Any:
    """Show the progress and the report of an import."""
    return _shape(accessible_import(request.auth.user, import_id))


@router.post(
    "/imports/{import_id}/retry", auth=allow("chat"), response=answers(404, 409, accepted=ImportShape)
)
def retry_import(request: ApiRequest, import_id: str) -> Any:
    """Continue a failed import, from the file that was kept (`can_try_again`)."""
    row = accessible_import(request.auth.user, import_id)
    try_import_again(row=row, now=clock.now())
    row.refresh_from_db()
    return Status(202, _shape(row))


@router.delete("/imports/{import_id}", auth=allow("chat"), response=answers(404, 409))
def discard_import(request: ApiRequest, import_id: str) -> Any:
    """Discard an incomplete upload, or the report and file of an import that ended. Imported conversations stay."""
    uploads.discard(user=request.auth.user, import_id=import_id)
    return Status(204, None)
