"""The API of memory statistics, and of the export of daily files."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.http import FileResponse
from ninja import Query

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.long_term import schemas
from chatapp.long_term.archive import write_archive
from chatapp.long_term.selectors.entries import memory_stats
from chatapp.operations import clock
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, Period, answers

stats_router = Router(tags=["memory"])

DAYS = 30
MAX_DAYS = 366
ZIP = {"schema": {"type": "string", "format": "binary"}}


@stats_router.get(
    "/memory/stats",
    auth=allow("memory", "read"),
    response=answers(ok=Page[schemas.MemoryStats]),
)
def stats(request: ApiRequest, period: Query[Period]) -> Any:
    """Count memory entries, and tokens that models read and wrote for you, by day, oldest first. Days are those of your
    time zone."""
    user = request.auth.user
    last = period.end or clock.now().astimezone(user.zone).date()
    first = period.start or last - timedelta(days=DAYS - 1)
    if first > last or (last - first).days > MAX_DAYS:
        details = [{"field": "from", "message": "must not be after `to`, nor more than a year before it"}]
        raise InvalidInput("`from` must not be after `to`, nor more than a year before it.", details=details)
    found = memory_stats(user, first, last)
    return {
        "items": [{"day": day.isoformat(), **asdict(one)} for day, one in found.items()],
        "next_cursor": None,
        "from": first.isoformat(),
        "to": last.isoformat(),
    }


@stats_router.get(
    "/memory/export",
    auth=allow("memory", "read"),
    response=answers(ok=None),
    openapi_extra={"responses": {200: {"content": {"application/zip": ZIP}}}},
)
def export(request: ApiRequest) -> FileResponse:
    """Download your daily files and your profile as Markdown in a ZIP archive."""
    archive = write_archive(request.auth.user.pk)
    return FileResponse(archive, as_attachment=True, filename="memory.zip", content_type="application/zip")
