"""Uploads of exports, and how far their imports are."""

from __future__ import annotations

from typing import Any, Literal

from asgiref.sync import sync_to_async
from ninja import File, Router, Status, UploadedFile
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.idempotency import creates
from chatapp.accounts.models import User
from chatapp.features.importing import job
from chatapp.features.importing.costs import estimate_costs
from chatapp.features.importing.models import Import
from chatapp.features.importing.selectors import accessible_import, imports_of
from chatapp.operations.clock import iso_time
from chatapp.operations.http.schemas import Moment, Page, Shape, answers

router = Router(tags=["conversations"])


class Problem(Shape):
    index: int = Field(description="The conversation's place in the file, from 0.")
    reason: str


class ImportShape(Shape):
    id: str
    file_name: str
    size_bytes: int
    state: Literal["waiting", "running", "done", "failed"]
    progress: float = Field(description="From 0 to 1.")
    source: str = Field(description="Which program's export it is; empty until that is seen.")
    conversations: int = Field(description="Imported by it.")
    messages: int
    known: int = Field(description="Conversations that were imported before.")
    problem_count: int
    problems: list[Problem] = Field(description="The first of those that could not be read.")
    left_out: dict[str, int] = Field(description="What stayed behind of those that could, by its name.")
    error: str = Field(description="Why all of it failed.")
    created_at: Moment
    finished_at: Moment | None


class Costs(Shape):
    conversations: int
    messages: int
    tokens: int = Field(description="About how many a model would read to summarise all of it.")
    model: str | None
    cost: float | None = Field(description="Of those tokens, in dollars; null: the price is not known.")
    embedding_tokens: int = Field(description="For the index by meaning; 0: it is not used.")


def _shape(row: Import) -> dict[str, Any]:
    share = row.read_bytes / row.total_bytes if row.total_bytes else 0.0
    report = row.report
    return {
        "id": str(row.pk),
        "file_name": row.file_name,
        "size_bytes": row.size_bytes,
        "state": row.state,
        "progress": 1.0 if row.state == Import.State.DONE else min(share, 1.0),
        "source": report.get("source", ""),
        **{name: report.get(name, 0) for name in ("conversations", "messages", "known", "problem_count")},
        "problems": report.get("problems", []),
        "left_out": report.get("left_out", {}),
        "error": row.error,
        "created_at": iso_time(row.created_at),
        "finished_at": iso_time(row.finished_at),
    }


async def _again(request: ApiRequest, made: str, values: dict[str, Any]) -> Any:
    return Status(202, _shape(await sync_to_async(accessible_import)(request.auth.user, made)))


@router.post("/imports", auth=allow("chat"), response=answers(409, 413, accepted=ImportShape))
@creates(_again)
async def new_import(request: ApiRequest, file: File[UploadedFile]) -> Any:
    """An export of ChatGPT, Claude, Open WebUI, LibreChat or Palimpsest, as the form field `file`: JSON or the zip. It
    is imported in the background, without asking a model; conversations that were imported before are passed over."""
    return Status(202, await sync_to_async(_begin)(request.auth.user, file))


def _begin(user: User, file: UploadedFile) -> dict[str, Any]:
    row = job.begin(user=user, name=file.name or "", chunks=file.chunks(), size_bytes=file.size or 0)
    return _shape(row)


@router.get("/imports", auth=allow("chat", "read"), response=answers(ok=Page[ImportShape]))
async def list_imports(request: ApiRequest) -> Any:
    """The newest 50, newest first; each is kept for 90 days."""
    rows = await sync_to_async(imports_of)(request.auth.user)
    return {"items": [_shape(row) for row in rows], "next_cursor": None}


@router.get("/imports/cost", auth=allow("chat", "read"), response=answers(ok=Costs))
async def read_costs(request: ApiRequest) -> Any:
    """What all that you imported holds. No model is asked until you go on with a conversation: then it is summarised,
    by the model that is named here, for about this price if it were all of them."""
    return await sync_to_async(estimate_costs)(request.auth.user)


@router.get("/imports/{import_id}", auth=allow("chat", "read"), response=answers(404, ok=ImportShape))
async def read_import(request: ApiRequest, import_id: str) -> Any:
    """How far it is, and its report."""
    return _shape(await sync_to_async(accessible_import)(request.auth.user, import_id))
