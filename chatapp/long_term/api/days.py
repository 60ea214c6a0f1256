"""The API of daily files, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from ninja import Status
from pydantic import TypeAdapter, ValidationError

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.long_term import changes, schemas
from chatapp.long_term.actions.days import DaySection
from chatapp.long_term.files import daily_entry
from chatapp.long_term.models import MemoryEntry
from chatapp.long_term.schemas import EntryText, MarkdownIn
from chatapp.long_term.selectors.entries import day_entries, day_version, list_days
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.errors import InvalidInput, NotFound
from chatapp.operations.http.etags import IfMatch, tag_version, version_of
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers
from chatapp.recall.selectors.claims import Superseded, repeated_claims, superseded_claims
from memory.bounds import Cursor, Day, PageSize
from memory.long_term.daily import DailyEntry, parse_day, render_day

memory_router = Router(tags=["memory"])

_DAY: TypeAdapter[date] = TypeAdapter(Day)
_ENTRY_TEXT: TypeAdapter[str] = TypeAdapter(EntryText)
MARKDOWN = {"schema": {"type": "string"}}
READ = {"responses": {200: {"content": {"text/markdown": MARKDOWN}}}}
WRITTEN = {"requestBody": {"content": {"text/markdown": MARKDOWN}}}


@memory_router.get(
    "/memory/days",
    auth=allow("memory", "read"),
    response=answers(ok=Page[schemas.MemoryDay]),
)
def days(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 50) -> Any:
    """List the days that have memory entries, newest first. Days are those of your time zone (`PATCH /me`)."""
    found = list_days(request.auth.user, before=_day_of_cursor(cursor), limit=limit + 1)
    page = found[:limit]
    return {
        "items": [{"day": item.day.isoformat(), "entry_count": item.entry_count} for item in page],
        "next_cursor": page[-1].day.isoformat() if len(found) > limit else None,
    }


def _day_of_cursor(cursor: str | None) -> date | None:
    try:
        return date.fromisoformat(cursor) if cursor else None
    except ValueError:
        details = [{"field": "cursor", "message": "Use `next_cursor` of the previous page."}]
        raise InvalidInput("This cursor is invalid.", details=details) from None


def day_of_path(raw: str) -> date:
    """Return the day of a URL path. Raise NotFound if it is invalid."""
    try:
        return _DAY.validate_python(raw)
    except ValidationError:
        raise NotFound() from None


@memory_router.get(
    "/memory/days/{day}",
    auth=allow("memory", "read"),
    response=answers(404, ok=schemas.MemoryDayText),
    openapi_extra=READ,
)
def day_text(request: ApiRequest, response: HttpResponse, day: str) -> Any:
    """Return one daily file as Markdown, and its entries. With `Accept: text/markdown`, return only the Markdown."""
    shown = day_of_path(day)
    rows = day_entries(request.auth.user.pk, shown)
    if not rows:
        raise NotFound("There are no memory entries for this day.")
    return markdown_or_shape(request, response, _day_shape(shown, rows))


def markdown_or_shape(request: ApiRequest, response: HttpResponse, shape: dict[str, Any]) -> Any:
    """Return the Markdown alone if the client prefers it, else the shape; either with its version as ETag."""
    if not request.headers.get("Accept", "").startswith("text/markdown"):
        tag_version(response, shape["version"])
        return shape
    markdown = HttpResponse(shape["markdown"], content_type="text/markdown; charset=utf-8")
    tag_version(markdown, shape["version"])
    return markdown


def _day_shape(day: date, rows: Sequence[MemoryEntry]) -> dict[str, Any]:
    over = _superseded(rows)
    return {
        "day": day.isoformat(),
        "markdown": render_day(day, [daily_entry(row) for row in rows]),
        "version": day_version(rows),
        "entries": [schemas.entry_shape(row) | {"superseded": over[row.pk]} for row in rows],
    }


def _superseded(rows: Sequence[MemoryEntry]) -> dict[UUID, list[dict[str, Any]]]:
    """Return the superseded sentences of each entry, with the time until which they held and the newer statement. All
    entries belong to one user."""
    if not rows:
        return {}
    user_id = rows[0].user_id
    named = superseded_claims(user_id, [row.pk for row in rows])
    repeated = repeated_claims(user_id, {row.text for row in rows})
    return {row.pk: _over([*repeated.get(row.text, ()), *named.get(row.pk, ())]) for row in rows}


def _over(claims: Sequence[Superseded]) -> list[dict[str, Any]]:
    return [
        {
            "text": claim.said,
            "valid_until": iso_time(claim.until),
            "superseded_by": claim.text,
        }
        for claim in {claim.said: claim for claim in claims}.values()
    ]


@memory_router.put(
    "/memory/days/{day}",
    auth=allow("memory"),
    response=answers(404, 409, ok=schemas.MemoryDayText),
    openapi_extra=WRITTEN,
)
def write_day(
    request: ApiRequest, response: HttpResponse, day: str, body: MarkdownIn, if_match: IfMatch = None
) -> Any:
    """Replace a daily file. Changed sections become edits with a history, missing sections are forgotten. Begin a new
    section with a heading like `## 14:05`, or put it before the first section.

    With `If-Match: <ETag of what you changed>`, return 409 if it was changed meanwhile; without it, the last one wins.
    """
    written = day_of_path(day)
    rows = changes.rewrite_day(
        user=request.auth.user,
        day=written,
        sections=_sections(body.markdown),
        version=version_of(if_match),
        now=clock.now(),
    )
    shape = _day_shape(written, rows)
    tag_version(response, shape["version"])
    return shape


def _sections(markdown: str) -> list[DaySection]:
    """Parse the sections of a day's Markdown. A section with an empty text counts as removed. Raise InvalidInput."""
    try:
        return [_section(entry) for entry in parse_day(markdown) if entry.text.strip()]
    except ValidationError as error:
        message = f"A section is not acceptable: {error.errors()[0]['msg']}."
        raise InvalidInput(message, details=[{"field": "markdown", "message": message}]) from None
    # Last, because pydantic's ValidationError is a ValueError, too.
    except ValueError:
        message = (
            "The comment below a section's heading was changed. Leave it as it is, or remove the section."
        )
        raise InvalidInput(message, details=[{"field": "markdown", "message": message}]) from None


def _section(entry: DailyEntry) -> DaySection:
    return DaySection(entry_id=entry.id, text=_ENTRY_TEXT.validate_python(entry.text), clock=entry.clock)


@memory_router.delete("/memory/days/{day}", auth=allow("memory"), response=answers(404))
def remove_day(request: ApiRequest, day: str) -> Any:
    """Forget all entries of this day."""
    changes.forget_day(user=request.auth.user, day=day_of_path(day))
    return Status(204, None)
