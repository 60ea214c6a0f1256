"""The API of the profile and its versions."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from django.http import HttpResponse
from ninja import Path, Status
from pydantic import Field

from chatapp.accounts.callers import ApiRequest, allow
from chatapp.accounts.models import User
from chatapp.long_term import changes as memory_changes
from chatapp.long_term import schemas
from chatapp.long_term.actions.consolidations import queue_consolidation
from chatapp.long_term.api.days import READ, WRITTEN, markdown_or_shape
from chatapp.long_term.models import Consolidation, Profile, ProfileVersion
from chatapp.long_term.schemas import ProfileIn
from chatapp.long_term.selectors.profile import (
    accessible_version,
    latest_consolidation,
    profile_of,
    version_page,
)
from chatapp.operations import clock
from chatapp.operations.clock import iso_time
from chatapp.operations.errors import InvalidInput
from chatapp.operations.http.etags import IfMatch, tag_version, version_of
from chatapp.operations.http.routers import Router
from chatapp.operations.http.schemas import Page, answers
from memory.bounds import MAX_NUMBER, Cursor, PageSize
from memory.long_term.profile import compare_lines
from memory.tokens import estimate_text
from memory.window.policy import DEFAULT_POLICY

profile_router = Router(tags=["memory"])

Number = Annotated[int, Path(ge=1, le=MAX_NUMBER)]
Against = Annotated[int | None, Field(ge=0, le=MAX_NUMBER)]


@profile_router.get(
    "/memory/profile",
    auth=allow("memory", "read"),
    response=answers(ok=schemas.Profile),
    openapi_extra=READ,
)
def read(request: ApiRequest, response: HttpResponse) -> Any:
    """Return your profile, the short memory in every context. With `Accept: text/markdown`, return only the
    Markdown."""
    return markdown_or_shape(request, response, _read(request.auth.user))


def _read(user: User) -> dict[str, Any]:
    return _shape(user, profile_of(user.pk))


def _shape(user: User, profile: Profile) -> dict[str, Any]:
    newest = next(iter(version_page(user, before=None, limit=1)), None)
    return {
        "markdown": profile.text,
        "version": profile.version,
        "author": newest.author if newest else None,
        "updated_at": iso_time(newest.created_at) if newest else None,
        "tokens": estimate_text(profile.text),
        "budget_tokens": DEFAULT_POLICY.profile_budget,
        "is_used": user.uses_profile and not user.memory_paused,
        "consolidation": _consolidation(latest_consolidation(user.pk)),
    }


def _consolidation(row: Consolidation | None) -> dict[str, Any] | None:
    if row is None:
        return None
    return {
        "status": row.status,
        "reason": row.error or None,
        "entry_count": row.entry_count,
        "version": row.version,
        "created_at": iso_time(row.created_at),
        "finished_at": iso_time(row.finished_at),
    }


@profile_router.put(
    "/memory/profile",
    auth=allow("memory"),
    response=answers(409, ok=schemas.Profile),
    openapi_extra=WRITTEN,
)
def write(request: ApiRequest, response: HttpResponse, body: ProfileIn, if_match: IfMatch = None) -> Any:
    """Replace the profile with your own text. Consolidations keep what you write and do not restore what you remove.
    With `If-Match`, return 409 if it was changed meanwhile."""
    user, version = request.auth.user, _expected(if_match)
    profile = memory_changes.write_profile(user=user, text=body.markdown, version=version, now=clock.now())
    shape = _shape(user, profile)
    tag_version(response, shape["version"])
    return shape


def _expected(if_match: str | None) -> int | None:
    """Return the version that an ETag names: None if none was sent, -1, which matches no version, if it is invalid."""
    version = version_of(if_match)
    if version is None:
        return None
    # isdigit() alone accepts characters that int() rejects, e.g. "²".
    return int(version) if version.isascii() and version.isdigit() else -1


@profile_router.get(
    "/memory/profile/versions",
    auth=allow("memory", "read"),
    response=answers(ok=Page[schemas.ProfileVersion]),
)
def versions(request: ApiRequest, cursor: Cursor = None, limit: PageSize = 50) -> Any:
    """List the versions of the profile, newest first: who changed it, and when."""
    # A number beyond MAX_NUMBER does not fit the column.
    if cursor and not (cursor.isascii() and cursor.isdigit() and int(cursor) <= MAX_NUMBER):
        details = [{"field": "cursor", "message": "Use `next_cursor` of the previous page."}]
        raise InvalidInput("This cursor is invalid.", details=details)
    found = version_page(request.auth.user, before=int(cursor) if cursor else None, limit=limit + 1)
    page = found[:limit]
    next_cursor = str(page[-1].number) if len(found) > limit else None
    return {"items": [_version(row) for row in page], "next_cursor": next_cursor}


def _version(row: ProfileVersion) -> dict[str, Any]:
    return {
        "version": row.number,
        "author": row.author,
        "created_at": iso_time(row.created_at),
        "tokens": estimate_text(row.text),
    }


@profile_router.get(
    "/memory/profile/versions/{version}",
    auth=allow("memory", "read"),
    response=answers(404, ok=schemas.ProfileVersionText),
)
def read_version(request: ApiRequest, version: Number, against: Against = None) -> Any:
    """Return one version and its changes, line by line, compared with version `against`, by default the one before."""
    row = accessible_version(request.auth.user, version)
    against = version - 1 if against is None else against
    before = accessible_version(request.auth.user, against).text if against else ""
    changes = [asdict(change) for change in compare_lines(before, row.text)]
    return {**_version(row), "markdown": row.text, "against": against, "changes": changes}


@profile_router.post(
    "/memory/profile/versions/{version}/revert",
    auth=allow("memory"),
    response=answers(404, ok=schemas.Profile),
)
def revert(request: ApiRequest, version: Number) -> Any:
    """Restore the text of an earlier version as a new version."""
    user = request.auth.user
    return _shape(user, memory_changes.revert_profile(user=user, number=version, now=clock.now()))


@profile_router.post(
    "/memory/profile/consolidate",
    auth=allow("memory"),
    response=answers(accepted=schemas.Profile),
)
def consolidate(request: ApiRequest) -> Any:
    """Add new entries to the profile now instead of at night. `consolidation` shows the progress."""
    queue_consolidation(user_id=request.auth.user.pk, now=clock.now())
    return Status(202, _read(request.auth.user))
